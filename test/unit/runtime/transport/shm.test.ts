import { transportCompliance } from './compliance.js';

transportCompliance('shm');
