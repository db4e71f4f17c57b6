import { existsSync, readdirSync, readFileSync } from '#platform/files';
import { dirname, join } from '#platform/paths';

/** True if a port of an RDMA device (InfiniBand, RoCE, iWARP) is active. */
export function hasRdmaPort(devices = '/sys/class/infiniband'): boolean {
  return names(devices).some((device) =>
    names(join(devices, device, 'ports')).some((port) => text(join(devices, device, 'ports', port, 'state')).includes('ACTIVE')),
  );
}

/** True if the UCX of this process has its module for RDMA devices, which some systems install separately. */
export function hasRdmaModule(maps = text('/proc/self/maps')): boolean {
  const [, library] = /\s(\/\S*\/libuct\.so\S*)$/m.exec(maps) ?? [];
  const folder = process.env['UCX_MODULE_DIR'] ?? (library === undefined ? undefined : join(dirname(library), 'ucx'));
  return folder !== undefined && existsSync(folder) && names(folder).some((name) => name.startsWith('libuct_ib'));
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function text(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
