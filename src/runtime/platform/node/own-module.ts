export { ownFolder } from '../../../own-module.js';
