import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { countDevices } from '../../../../../src/runtime/device/cuda/context.js';
import {
  argumentTypes,
  DEVICE_MAP,
  DEVICE_MEMORY,
  deviceAttributes,
  EVENT_OF_PROCESSES,
  EVENT_WITHOUT_TIMING,
  FILE_DESCRIPTOR,
  functions,
  IPC_BYTES,
  IPC_PEER_ACCESS,
  jitOptions,
  launchParameters,
  memoryAccess,
  memoryProperties,
  multicastObject,
  NON_BLOCKING_STREAM,
  ON_DEVICE,
  pointerAttributes,
  RECOMMENDED,
  UUID_BYTES,
  type FunctionName,
} from '../../../../../src/runtime/device/cuda/functions.js';
import { open } from '../../../../../src/runtime/device/cuda/load.js';
import { describeResult, results } from '../../../../../src/runtime/device/cuda/results.js';

const header = [process.env['CUDA_HOME'], '/usr/local/cuda']
  .flatMap((home) => (home === undefined ? [] : [`${home}/include/cuda.h`]))
  .find((file) => existsSync(file));
const hasCompiler = spawnSync('cc', ['--version']).status === 0;
const folder = mkdtempSync(join(tmpdir(), 'tccl-cuda-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.skipIf(header === undefined || !hasCompiler)(
  'the table of functions (needs: cuda.h of a toolkit, in CUDA_HOME; cc)',
  () => {
    it('has the names and the kinds of arguments of cuda.h', () => {
      const text = execFileSync('cc', ['-E', '-P', header ?? ''], { encoding: 'utf8', maxBuffer: 2 ** 26 });
      const wrong = Object.entries(functions).flatMap(([name, kinds]) => {
        const found = new RegExp(`CUresult ${name}\\(([^;]*)\\);`).exec(text)?.[1];
        if (found === undefined) return [`${name}: not in the header`];
        const fits = found
          .split(',')
          .map((declared, i) => fitting(declared.replace(/\s+/g, ' ').trim()).includes(kinds[i] ?? ''));
        return fits.length === kinds.length && fits.every(Boolean) ? [] : [`${name}(${found}): ${kinds.join(', ')}`];
      });
      expect(wrong).toEqual([]);
    });

    it('has the constants and sizes of cuda.h', () => {
      const constants: Record<string, number> = {
        'sizeof(CUuuid)': UUID_BYTES,
        'sizeof(CUdeviceptr)': 8,
        'sizeof(CUcontext)': 8,
        'sizeof(CUdevice)': 4,
        'sizeof(CUjit_option)': 4,
        CU_STREAM_NON_BLOCKING: NON_BLOCKING_STREAM,
        CU_MEMHOSTREGISTER_DEVICEMAP: DEVICE_MAP,
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR: FILE_DESCRIPTOR,
        CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED: deviceAttributes.multicast,
        CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: deviceAttributes.virtualMemory,
        CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: deviceAttributes.fileDescriptors,
        CU_MULTICAST_GRANULARITY_RECOMMENDED: RECOMMENDED,
        CU_MEM_ALLOC_GRANULARITY_RECOMMENDED: RECOMMENDED,
        CU_MEM_ALLOCATION_TYPE_PINNED: ON_DEVICE,
        CU_MEM_LOCATION_TYPE_DEVICE: ON_DEVICE,
        CU_MEM_ACCESS_FLAGS_PROT_READWRITE: memoryAccess.readAndWrite,
        'sizeof(CUmemAllocationProp)': memoryProperties.bytes,
        'offsetof(CUmemAllocationProp, type)': memoryProperties.type,
        'offsetof(CUmemAllocationProp, requestedHandleTypes)': memoryProperties.handleTypes,
        'offsetof(CUmemAllocationProp, location.type)': memoryProperties.locationType,
        'offsetof(CUmemAllocationProp, location.id)': memoryProperties.locationId,
        'sizeof(CUmemAccessDesc)': memoryAccess.bytes,
        'offsetof(CUmemAccessDesc, location.type)': memoryAccess.locationType,
        'offsetof(CUmemAccessDesc, location.id)': memoryAccess.locationId,
        'offsetof(CUmemAccessDesc, flags)': memoryAccess.flags,
        'sizeof(CUmulticastObjectProp)': multicastObject.bytes,
        'offsetof(CUmulticastObjectProp, numDevices)': multicastObject.nDevices,
        'offsetof(CUmulticastObjectProp, size)': multicastObject.size,
        'offsetof(CUmulticastObjectProp, handleTypes)': multicastObject.handleTypes,
        CU_EVENT_DISABLE_TIMING: EVENT_WITHOUT_TIMING,
        CU_EVENT_INTERPROCESS: EVENT_OF_PROCESSES,
        CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS: IPC_PEER_ACCESS,
        'sizeof(CUipcMemHandle)': IPC_BYTES,
        'sizeof(CUipcEventHandle)': IPC_BYTES,
        CU_MEMORYTYPE_DEVICE: DEVICE_MEMORY,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: deviceAttributes.multiprocessors,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: deviceAttributes.capabilityMajor,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: deviceAttributes.capabilityMinor,
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE: pointerAttributes.memoryType,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: pointerAttributes.device,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: pointerAttributes.rangeStart,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE: pointerAttributes.rangeSize,
        CU_JIT_ERROR_LOG_BUFFER: jitOptions.errorLog,
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: jitOptions.errorLogBytes,
        CU_LAUNCH_PARAM_END_AS_INT: launchParameters.end,
        CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT: launchParameters.address,
        CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT: launchParameters.bytes,
        ...Object.fromEntries(
          Object.entries(results).map(([name, value]) => [name === 'SUCCESS' ? 'CUDA_SUCCESS' : `CUDA_ERROR_${name}`, value]),
        ),
      };
      const checks = Object.entries(constants).map(([name, value]) => `_Static_assert(${name} == ${value}, "${name}");`);
      writeFileSync(join(folder, 'constants.c'), `#include <cuda.h>\n#include <stddef.h>\n${checks.join('\n')}\n`);
      const include = `-I${(header ?? '').replace('/cuda.h', '')}`;
      const { stderr } = spawnSync('cc', ['-fsyntax-only', include, join(folder, 'constants.c')], { encoding: 'utf8' });
      expect(stderr).toBe('');
    });
  },
);

/** Kinds that an argument of a C declaration may have. */
function fitting(declared: string): readonly string[] {
  if (/^const char \*\*/.test(declared)) return ['text'];
  if (/^const char \*/.test(declared)) return ['name'];
  // Addresses that are always 0 here.
  if (/^void \*\*kernelParams/.test(declared)) return ['handle'];
  // A file descriptor as an address.
  if (/^void \*osHandle/.test(declared) || declared.startsWith('unsigned long long')) return ['handle'];
  if (declared.includes('*')) return ['bytes'];
  if (/^CUipc(Mem|Event)Handle\b/.test(declared)) return ['ipc'];
  if (/^(CUdeviceptr|CUcontext|CUstream|CUevent|CUmodule|CUfunction|CUmemGenericAllocationHandle)\b/.test(declared))
    return ['handle'];
  if (declared.startsWith('unsigned int')) return ['u32'];
  if (declared.startsWith('unsigned char')) return ['byte'];
  if (declared.startsWith('size_t')) return ['size'];
  return /^(int|CUdevice|CUresult|CUdevice_attribute|CUpointer_attribute|CUmulticastGranularity_flags|CUmem\w+)\b/.test(declared)
    ? ['i32']
    : [];
}

/** Compiles a library with functions of the table, which return 34, and others by hand. */
function compile(name: string, lacking: readonly FunctionName[] = []): string {
  const own: Partial<Record<FunctionName, string>> = {
    cuDriverGetVersion: '*(int *)a0 = 11040; return 0;',
    cuGetErrorName: '*a1 = a0 == 34 ? "CUDA_ERROR_STUB_LIBRARY" : 0; return a0 == 34 ? 0 : 1;',
    cuGetErrorString: '*a1 = "CUDA driver is a stub library"; return 0;',
    cuIpcOpenMemHandle_v2:
      '*(uint64_t *)a0 = 0; for (int i = 0; i < 64; i++) *(uint64_t *)a0 += i * a1.reserved[i]; return a2 == 1 ? 0 : 1;',
    cuMemcpyHtoDAsync_v2: 'memcpy((void *)a0, a1, a2); return a3 == 0x123456789abcdefull ? 0 : 1;',
    cuLaunchKernel: `return a0 == 0xfedcba9876543210ull && a1 == 1 && a2 == 2 && a3 == 3 && a4 == 4 && a5 == 5 && a6 == 6 && a7 == 7
      && a8 == 8 && a9 == 0 && ((uint64_t *)a10)[1] == (uint64_t)-1 ? 0 : 1;`,
  };
  const texts = Object.entries(functions)
    .filter(([each]) => !lacking.includes(each as FunctionName))
    .map(([each, kinds]) => {
      const parameters = kinds.map((kind, i) => `${argumentTypes[kind].replace('_Out_ ', '')} a${i}`).join(', ');
      return `int ${each}(${parameters}) { ${own[each as FunctionName] ?? 'return 34;'} }`;
    });
  writeFileSync(
    join(folder, `${name}.c`),
    `#include <stdint.h>\n#include <string.h>\n#include <stddef.h>\ntypedef struct { char reserved[64]; } CUipcHandle;\n${texts.join('\n')}\n`,
  );
  const library = join(folder, `${name}.so`);
  execFileSync('cc', ['-shared', '-fPIC', '-w', '-o', library, join(folder, `${name}.c`)]);
  return library;
}

describe('the driver', () => {
  it('that is not there is an error with a remedy', () => {
    expect(() => open('libcuda-not-here.so.1')).toThrow(
      /^cuda: the driver cannot be loaded \(libcuda-not-here\.so\.1: .*\): install an NVIDIA driver of CUDA 12\.2 or newer \(R535\); a container needs `--gpus all`$/,
    );
  });

  it.skipIf(!hasCompiler)('that is too old is an error with its version and the missing functions (needs: cc)', () => {
    const old = compile('old', ['cuModuleLoadDataEx', 'cuDeviceGetUuid_v2']);
    expect(() => open(old)).toThrow(
      `cuda: ${old} of CUDA 11.4 lacks cuDeviceGetUuid_v2, cuModuleLoadDataEx: install an NVIDIA driver of CUDA 12.2 or newer (R535)`,
    );
    const other = compile('other', Object.keys(functions).slice(1) as FunctionName[]);
    expect(() => open(other)).toThrow(
      `${other} lacks cuDriverGetVersion, cuGetErrorName, cuGetErrorString, cuDeviceGetCount, cuDeviceGet, cuDeviceGetName and `,
    );
  });

  it.skipIf(!hasCompiler)('gets every argument (needs: cc)', () => {
    const driver = open(compile('whole'));
    const from = new Uint8Array(new SharedArrayBuffer(64), 8, 16).fill(7);
    const to = new Uint8Array(16);
    expect(driver.cuMemcpyHtoDAsync_v2(driver.addressOf(to), from, 16, 0x123456789abcdefn)).toBe(0);
    expect(to).toEqual(new Uint8Array(16).fill(7));
    const opened = new BigUint64Array(1);
    expect(driver.cuIpcOpenMemHandle_v2(opened, { reserved: Uint8Array.from({ length: IPC_BYTES }, (_, i) => i) }, 1)).toBe(0);
    expect(opened[0]).toBe(85344n);
    const extra = BigUint64Array.of(1n, 2n ** 64n - 1n);
    expect(driver.cuLaunchKernel(0xfedcba9876543210n, 1, 2, 3, 4, 5, 6, 7, 8n, 0n, extra)).toBe(0);
    expect(describeResult(driver, 34)).toBe('CUDA_ERROR_STUB_LIBRARY (CUDA driver is a stub library)');
    expect(describeResult(driver, 4711)).toBe('the unknown CUresult 4711');
  });

  it.skipIf(!hasCompiler)("that is the toolkit's stub says so (needs: cc)", () => {
    const driver = open(compile('stub'));
    expect(() => countDevices(driver)).toThrow(
      'cuda: cuInit: CUDA_ERROR_STUB_LIBRARY (CUDA driver is a stub library): it is the stub of the CUDA toolkit, which cannot run: ' +
        'take its folder out of LD_LIBRARY_PATH',
    );
  });
});
