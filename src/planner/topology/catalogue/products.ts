import { type GpuModel, gpuModels } from './gpus.js';
import { findModel } from './lookup.js';

/** The model of a product: `NVIDIA A100-SXM4-80GB` is the A100 SXM; undefined where the catalogue lacks it. */
export function gpuOfProduct(product: string): GpuModel | undefined {
  const words = product
    .toLowerCase()
    .replaceAll(/[-_/]/g, ' ')
    .replaceAll(/\b(?:nvidia|tesla|graphics device)\b|\.\.\.$/g, ' ')
    .replaceAll(/\bsxm\d?\b/g, 'sxm')
    .split(/\s+/)
    .filter((word) => word !== '' && !/^\d+gb$|^hbm\d?e?$/.test(word));
  for (let count = words.length; count > 0; count--) {
    const model = findModel(words.slice(0, count).join(' '), gpuModels);
    if (model !== undefined) return model;
  }
  return undefined;
}
