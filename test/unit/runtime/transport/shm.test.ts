import { transportCompliance } from './compliance.js';
import { openShmPair } from './pairs.js';

transportCompliance('shm', openShmPair, { isSilent: true });
