export { Deserializer, Serializer, deserialize, serialize, setFlagsFromString } from 'node:v8';
export { runInNewContext } from 'node:vm';
