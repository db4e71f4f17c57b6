export { once, setMaxListeners } from 'node:events';
