import { existsSync } from '#platform/files';
import { dirname, join } from '#platform/paths';
import { namesIn, textOf } from '../../proc.js';

/** True if a port of an RDMA device (InfiniBand, RoCE, iWARP) is active. */
export function hasRdmaPort(devices = '/sys/class/infiniband'): boolean {
  return namesIn(devices).some((device) =>
    namesIn(join(devices, device, 'ports')).some((port) =>
      textOf(join(devices, device, 'ports', port, 'state')).includes('ACTIVE'),
    ),
  );
}

/** True if the UCX of this process has its module for RDMA devices, which some systems install separately. */
export function hasRdmaModule(maps = textOf('/proc/self/maps')): boolean {
  const [, library] = /\s(\/\S*\/libuct\.so\S*)$/m.exec(maps) ?? [];
  const folder = process.env['UCX_MODULE_DIR'] ?? (library === undefined ? undefined : join(dirname(library), 'ucx'));
  return folder !== undefined && existsSync(folder) && namesIn(folder).some((name) => name.startsWith('libuct_ib'));
}
