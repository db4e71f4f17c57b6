import { transportCompliance } from './compliance.js';

transportCompliance('socket');
