import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FakeHost } from './fake-host.js';
import { DeviceMemory, makeRegion, OFFSET_BITS, type Place, type Region } from '../ptx/memory.js';

/** Entries of the tables, in words of 32 bits; a state comes first, and is written last. */
const RANGE = { state: 0, pid: 1, device: 2, place: 3, bytes: 4, source: 5, context: 6, count: 7, words: 8 } as const;
const EVENT = { state: 0, pid: 1, recorded: 2, reached: 3, source: 4, isShared: 5, words: 6 } as const;
const PEER = { pid: 0, from: 1, to: 2, words: 3 } as const;
/** Memory apart from its addresses, or a multicast object: its GPUs follow, and the memory that is bound for each. */
const OBJECT = { state: 0, device: 1, place: 2, bytes: 3, nDevices: 4, uses: 5, nAdded: 6, members: 7, words: 7 + 16 } as const;
/** Names of objects in processes. */
const HANDLE = { state: 0, pid: 1, object: 2, words: 3 } as const;
const MAX_RANGES = 1 << 14;
const MAX_EVENTS = 1 << 12;
const MAX_PEERS = 1 << 10;
const MAX_OBJECTS = 1 << 9;
const MAX_HANDLES = 1 << 11;
/** Most GPUs of a multicast object. */
const MAX_MEMBERS = OBJECT.words - OBJECT.members;
const HEADER_WORDS = 16;
const RANGES_AT = HEADER_WORDS;
const EVENTS_AT = RANGES_AT + MAX_RANGES * RANGE.words;
const PEERS_AT = EVENTS_AT + MAX_EVENTS * EVENT.words;
const OBJECTS_AT = PEERS_AT + MAX_PEERS * PEER.words;
const HANDLES_AT = OBJECTS_AT + MAX_OBJECTS * OBJECT.words;
const TABLE_BYTES = 4 * (HANDLES_AT + MAX_HANDLES * HANDLE.words);
/** Words of the header: entries of each table so far, and units of memory that were given away. */
const counters = { ranges: 0, events: 1, peers: 2, units: 3, objects: 4, handles: 5 } as const;

const LIVE = 1;
const ENDED = 2;
/** Addresses without memory, or with memory that no GPU may access yet. */
const RESERVED = 3;
const MAPPED = 4;
const UNIT_BYTES = 256;

/** Bytes of a file that is the GPUs of several processes. They take memory when they are used. */
export const MACHINE_BYTES = 1 << 29;

/** A range of addresses in a process: memory that it allocated, or that of another process which it opened. */
export interface Range {
  readonly pointer: bigint;
  readonly bytes: number;
  readonly device: number;
  readonly isOpened: boolean;
}

/** An event of a process. */
export interface FakeEvent {
  /** Number of the event that it is, of this process or of another one. */
  readonly source: number;
  readonly isShared: boolean;
  readonly isOpened: boolean;
}

/** Memory that was created apart from its addresses, or a multicast object of so many GPUs. */
export interface FakeObject {
  /** Of memory: its GPU. */
  readonly device: number;
  readonly bytes: number;
  /** Of a multicast object; 0 for memory. */
  readonly nDevices: number;
}

/**
 * The GPUs of a host, with what processes share of them: memory, events, and the GPUs that may access each other. No entry and no
 * memory is used twice, so that late accesses are seen.
 *
 * Threads of a process share its addresses and events, as with a driver.
 */
export class FakeMachine {
  readonly #words: Int32Array;
  /** Memory of all GPUs, if processes share it. */
  readonly #shared: Uint8Array | undefined;
  readonly #own = new Map<number, Uint8Array>();
  /** Memory of objects, which has one region under all its addresses. */
  readonly #ofObjects = new Map<number, Region>();
  readonly #pid: number;

  /** Makes a file without a name, which its user closes. Node.js must not know of it in a thread: it closes the number, too. */
  makeFile: (bytes: number) => number = makeUnnamedFile;

  /**
   * @param memory MACHINE_BYTES bytes that processes share; without it, the machine is this object's alone
   * @param pid of another process, for tests of a single one
   */
  constructor(memory?: Uint8Array, pid = process.pid) {
    this.#pid = pid;
    const { buffer, byteOffset } = memory ?? new Uint8Array(TABLE_BYTES);
    this.#words = new Int32Array(buffer, byteOffset, TABLE_BYTES / 4);
    this.#shared = memory?.subarray(Math.ceil(TABLE_BYTES / UNIT_BYTES) * UNIT_BYTES);
  }

  get isShared(): boolean {
    return this.#shared !== undefined;
  }

  // ── memory ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  allocate(device: number, bytes: number): bigint {
    const slot = this.#next('ranges', MAX_RANGES);
    const place = this.#takePlace(bytes);
    this.#fill(RANGES_AT + slot * RANGE.words, [LIVE, this.#pid, device, place, bytes, slot, device, 0]);
    return addressOf(slot);
  }

  free(pointer: bigint): void {
    this.#set(slotOf(pointer), RANGE.state, ENDED);
  }

  /** Live memory of a GPU, of all processes, bytes. */
  used(device: number): number {
    let bytes = 0;
    for (let slot = 0; slot < this.#count('ranges'); slot++)
      if (
        this.#of(slot, RANGE.state) === LIVE &&
        this.#of(slot, RANGE.source) === slot &&
        this.#of(slot, RANGE.device) === device
      )
        bytes += this.#of(slot, RANGE.bytes);
    for (let object = 0; object < this.#count('objects'); object++) {
      const { device: owner, bytes: ofObject, nDevices } = this.object(object);
      if (this.#ofObject(object, OBJECT.uses) > 0 && nDevices === 0 && owner === device) bytes += ofObject;
    }
    return bytes;
  }

  /** The range of this process that an address is in. */
  rangeAt(address: bigint): Range | undefined {
    const slot = slotOf(address);
    if (!this.#isLive(slot)) return undefined;
    const pointer = addressOf(slot);
    const bytes = this.#of(slot, RANGE.bytes);
    if (address >= pointer + BigInt(bytes)) return undefined;
    return { pointer, bytes, device: this.#of(slot, RANGE.device), isOpened: this.#of(slot, RANGE.source) !== slot };
  }

  /** Number that other processes open memory by. */
  exportRange(address: bigint): number {
    const slot = slotOf(address);
    this.#set(slot, RANGE.count, 1);
    return slot;
  }

  /** State of memory that has a number: this process's own, freed, or that of another process, with its GPU. */
  exported(slot: number): { readonly isOwn: boolean; readonly isFreed: boolean; readonly device: number } {
    return {
      isOwn: this.#of(slot, RANGE.pid) === this.#pid,
      isFreed: this.#of(slot, RANGE.state) !== LIVE,
      device: this.#of(slot, RANGE.device),
    };
  }

  /** Opens memory of another process for a GPU: one address, however often. */
  open(source: number, context: number): bigint {
    for (const slot of this.#openings(source)) {
      if (this.#of(slot, RANGE.pid) !== this.#pid || this.#of(slot, RANGE.context) !== context) continue;
      Atomics.add(this.#words, RANGES_AT + slot * RANGE.words + RANGE.count, 1);
      return addressOf(slot);
    }
    const slot = this.#next('ranges', MAX_RANGES);
    const [device, place, bytes] = [RANGE.device, RANGE.place, RANGE.bytes].map((field) => this.#of(source, field));
    this.#fill(RANGES_AT + slot * RANGE.words, [LIVE, this.#pid, device ?? 0, place ?? 0, bytes ?? 0, source, context, 1]);
    return addressOf(slot);
  }

  /** Returns false for an address that open() did not give to this GPU. */
  close(pointer: bigint, context: number): boolean {
    const slot = slotOf(pointer);
    if (addressOf(slot) !== pointer || !this.#isLive(slot) || this.#of(slot, RANGE.source) === slot) return false;
    if (this.#of(slot, RANGE.context) !== context) return false;
    if (Atomics.sub(this.#words, RANGES_AT + slot * RANGE.words + RANGE.count, 1) === 1) this.#set(slot, RANGE.state, ENDED);
    return true;
  }

  /** Processes that run and have opened memory. */
  openedBy(pointer: bigint): readonly number[] {
    const slot = slotOf(pointer);
    if (this.#of(slot, RANGE.count) === 0) return [];
    return this.#openings(slot)
      .map((opening) => this.#of(opening, RANGE.pid))
      .filter(isRunning);
  }

  /** The region of an address for kernels of a GPU, or for the driver's own copies. */
  regionAt(slot: number, device: number | undefined): Region | undefined {
    if (!this.#isLive(slot)) return undefined;
    const [owner, context, bytes] = [RANGE.device, RANGE.context, RANGE.bytes].map((field) => this.#of(slot, field));
    const source = this.#of(slot, RANGE.source);
    if (source < 0) return device === undefined || context === device ? this.#regionOfObject(-1 - source) : undefined;
    if (device !== undefined && context !== device && !this.isPeer(device, owner ?? 0)) return undefined;
    return this.#regionOf(`memory of GPU ${owner}`, this.#of(slot, RANGE.place), bytes ?? 0);
  }

  isLive(slot: number): boolean {
    return this.#isLive(slot);
  }

  // ── memory apart from its addresses, and multicast objects ──────────────────────────────────────────────────────────

  /** A handle of new memory of a GPU, or of a new multicast object for `nDevices`. */
  create(device: number, bytes: number, nDevices = 0): number {
    if (nDevices > MAX_MEMBERS) throw new Error(`the fake driver has multicast objects of at most ${MAX_MEMBERS} GPUs`);
    const object = this.#next('objects', MAX_OBJECTS);
    const place = nDevices === 0 ? this.#takePlace(bytes) : 0;
    this.#fill(OBJECTS_AT + object * OBJECT.words, [LIVE, device, place, bytes, nDevices, 0]);
    return this.openObject(object);
  }

  object(object: number): FakeObject {
    const [device = 0, bytes = 0, nDevices = 0] = [OBJECT.device, OBJECT.bytes, OBJECT.nDevices].map((field) =>
      this.#ofObject(object, field),
    );
    return { device, bytes, nDevices };
  }

  /** A handle of this process of an object that another handle names. */
  openObject(object: number): number {
    const handle = this.#next('handles', MAX_HANDLES);
    this.#use(object, 1);
    this.#fill(HANDLES_AT + handle * HANDLE.words, [LIVE, this.#pid, object]);
    return handle;
  }

  /** Number of the object that a handle of this process names. */
  objectOf(handle: number): number | undefined {
    if (handle < 0 || handle >= MAX_HANDLES) return undefined;
    const [state, pid, object] = this.#words.subarray(HANDLES_AT + handle * HANDLE.words);
    return state === LIVE && pid === this.#pid ? object : undefined;
  }

  releaseHandle(handle: number): void {
    this.#use(this.objectOf(handle) ?? 0, -1);
    Atomics.store(this.#words, HANDLES_AT + handle * HANDLE.words, ENDED);
  }

  /** Adds a GPU to a multicast object. Returns false if it has it, or all. */
  addMember(object: number, device: number): boolean {
    const at = OBJECTS_AT + object * OBJECT.words + OBJECT.members + device;
    if (device >= MAX_MEMBERS || this.nAdded(object) >= this.object(object).nDevices) return false;
    if (Atomics.compareExchange(this.#words, at, 0, -1) !== 0) return false;
    Atomics.add(this.#words, OBJECTS_AT + object * OBJECT.words + OBJECT.nAdded, 1);
    return true;
  }

  nAdded(object: number): number {
    return this.#ofObject(object, OBJECT.nAdded);
  }

  /** GPUs for which memory is bound. */
  nBound(object: number): number {
    return this.#members(object).length;
  }

  /** Binds memory for its GPU. Returns false if the object does not have the GPU, or other memory is bound for it. */
  bind(object: number, memory: number): boolean {
    const at = OBJECTS_AT + object * OBJECT.words + OBJECT.members + this.object(memory).device;
    if (Atomics.compareExchange(this.#words, at, -1, memory + 1) !== -1) return false;
    this.#use(memory, 1);
    return true;
  }

  unbind(object: number, device: number): boolean {
    const at = OBJECTS_AT + object * OBJECT.words + OBJECT.members + device;
    const memory = Atomics.load(this.#words, at) - 1;
    if (memory < 0) return false;
    Atomics.store(this.#words, at, -1);
    this.#use(memory, -1);
    return true;
  }

  /** Addresses that have no memory. */
  reserve(bytes: number): bigint {
    const slot = this.#next('ranges', MAX_RANGES);
    this.#fill(RANGES_AT + slot * RANGE.words, [RESERVED, this.#pid, 0, 0, bytes, -1, -1, 0]);
    return addressOf(slot);
  }

  /** Returns false for addresses that were not reserved, have memory, or are of another length. */
  unreserve(pointer: bigint, bytes: number): boolean {
    const slot = this.#slotIn(RESERVED, pointer, bytes);
    if (slot !== undefined) this.#set(slot, RANGE.state, ENDED);
    return slot !== undefined;
  }

  map(pointer: bigint, bytes: number, object: number): boolean {
    const slot = this.#slotIn(RESERVED, pointer, bytes);
    if (slot === undefined || this.object(object).bytes !== bytes) return false;
    this.#set(slot, RANGE.device, this.object(object).device);
    this.#set(slot, RANGE.source, -1 - object);
    this.#set(slot, RANGE.state, MAPPED);
    this.#use(object, 1);
    return true;
  }

  /** The object that addresses of this process have, before or after a GPU may access them. */
  mapped(pointer: bigint, bytes: number): number | undefined {
    const slot = this.#slotIn(MAPPED, pointer, bytes) ?? this.#slotIn(LIVE, pointer, bytes);
    const source = slot === undefined ? 0 : this.#of(slot, RANGE.source);
    return source < 0 ? -1 - source : undefined;
  }

  admit(pointer: bigint, device: number): void {
    this.#set(slotOf(pointer), RANGE.context, device);
    this.#set(slotOf(pointer), RANGE.state, LIVE);
  }

  unmap(pointer: bigint, bytes: number): boolean {
    const object = this.mapped(pointer, bytes);
    if (object === undefined) return false;
    this.#set(slotOf(pointer), RANGE.state, RESERVED);
    this.#use(object, -1);
    return true;
  }

  #slotIn(state: number, pointer: bigint, bytes: number): number | undefined {
    const slot = slotOf(pointer);
    const isOwn = slot >= 0 && slot < MAX_RANGES && addressOf(slot) === pointer && this.#of(slot, RANGE.pid) === this.#pid;
    return isOwn && this.#of(slot, RANGE.state) === state && this.#of(slot, RANGE.bytes) === bytes ? slot : undefined;
  }

  #use(object: number, change: number): void {
    Atomics.add(this.#words, OBJECTS_AT + object * OBJECT.words + OBJECT.uses, change);
  }

  #ofObject(object: number, field: number): number {
    return Atomics.load(this.#words, OBJECTS_AT + object * OBJECT.words + field);
  }

  /** Memory that is bound to a multicast object. */
  #members(object: number): number[] {
    const bound = Array.from({ length: MAX_MEMBERS }, (_, device) => this.#ofObject(object, OBJECT.members + device) - 1);
    return bound.filter((memory) => memory >= 0);
  }

  #regionOfObject(object: number): Region {
    const { device, bytes, nDevices } = this.object(object);
    if (nDevices > 0) {
      const members = this.#members(object).map((memory) => this.#regionOfObject(memory));
      return { ...makeRegion('a multicast object', 0), members, length: bytes };
    }
    let region = this.#ofObjects.get(object);
    if (region === undefined) {
      region = this.#regionOf(`created memory of GPU ${device}`, this.#ofObject(object, OBJECT.place), bytes);
      this.#ofObjects.set(object, region);
    }
    return region;
  }

  #takePlace(bytes: number): number {
    const units = Math.ceil(bytes / UNIT_BYTES);
    const place = Atomics.add(this.#words, counters.units, units);
    if (this.#shared === undefined) this.#own.set(place, new Uint8Array(bytes));
    else if ((place + units) * UNIT_BYTES > this.#shared.length) throw new Error('the machine of the fake driver is full');
    return place;
  }

  #regionOf(name: string, place: number, bytes: number): Region {
    const shared = this.#shared?.subarray(place * UNIT_BYTES, place * UNIT_BYTES + bytes);
    return makeRegion(name, bytes, shared ?? this.#own.get(place) ?? new Uint8Array(0));
  }

  // ── access between GPUs ─────────────────────────────────────────────────────────────────────────────────────────────

  isPeer(from: number, to: number): boolean {
    for (let i = 0; i < this.#count('peers'); i++) {
      const at = PEERS_AT + i * PEER.words;
      const [pid, one, other] = this.#words.subarray(at, at + PEER.words);
      if (pid === this.#pid && one === from && other === to) return true;
    }
    return false;
  }

  addPeer(from: number, to: number): void {
    this.#fill(PEERS_AT + this.#next('peers', MAX_PEERS) * PEER.words, [this.#pid, from, to]);
  }

  // ── events ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  makeEvent(isShared: boolean): number {
    const event = this.#next('events', MAX_EVENTS);
    this.#fill(EVENTS_AT + event * EVENT.words, [LIVE, this.#pid, 0, 0, event, Number(isShared)]);
    return event;
  }

  /** Facts of an event; undefined if this process has none of this number. */
  event(event: number): FakeEvent | undefined {
    if (this.#ofEvent(event, EVENT.state) !== LIVE || this.#ofEvent(event, EVENT.pid) !== this.#pid) return undefined;
    const source = this.#ofEvent(event, EVENT.source);
    return { source, isShared: this.#ofEvent(source, EVENT.isShared) === 1, isOpened: source !== event };
  }

  /** Opens an event of another process; undefined if it is this one's, or is gone. */
  openEvent(source: number): number | undefined {
    if (this.#ofEvent(source, EVENT.state) !== LIVE || this.#ofEvent(source, EVENT.pid) === this.#pid) return undefined;
    const event = this.#next('events', MAX_EVENTS);
    this.#fill(EVENTS_AT + event * EVENT.words, [LIVE, this.#pid, 0, 0, source, 1]);
    return event;
  }

  endEvent(event: number): void {
    Atomics.store(this.#words, EVENTS_AT + event * EVENT.words, ENDED);
  }

  /** Counts a record of an event. @returns its number */
  record(source: number): number {
    return Atomics.add(this.#words, EVENTS_AT + source * EVENT.words + EVENT.recorded, 1) + 1;
  }

  recorded(source: number): number {
    return this.#ofEvent(source, EVENT.recorded);
  }

  reach(source: number, record: number): void {
    const at = EVENTS_AT + source * EVENT.words + EVENT.reached;
    if (Atomics.load(this.#words, at) < record) Atomics.store(this.#words, at, record);
  }

  hasReached(source: number, record: number): boolean {
    return this.#ofEvent(source, EVENT.reached) >= record;
  }

  /** Lets other processes go on for a moment. */
  pause(): void {
    Atomics.wait(pausing, 0, 0, 1);
  }

  #openings(source: number): number[] {
    const found: number[] = [];
    for (let slot = 0; slot < this.#count('ranges'); slot++)
      if (slot !== source && this.#of(slot, RANGE.source) === source && this.#of(slot, RANGE.state) === LIVE) found.push(slot);
    return found;
  }

  #isLive(slot: number): boolean {
    return slot >= 0 && slot < MAX_RANGES && this.#of(slot, RANGE.state) === LIVE && this.#of(slot, RANGE.pid) === this.#pid;
  }

  #of(slot: number, field: number): number {
    return Atomics.load(this.#words, RANGES_AT + slot * RANGE.words + field);
  }

  #ofEvent(event: number, field: number): number {
    if (event < 0 || event >= MAX_EVENTS) return 0;
    return Atomics.load(this.#words, EVENTS_AT + event * EVENT.words + field);
  }

  #set(slot: number, field: number, value: number): void {
    Atomics.store(this.#words, RANGES_AT + slot * RANGE.words + field, value);
  }

  #count(table: 'ranges' | 'peers' | 'objects'): number {
    return Atomics.load(this.#words, counters[table]);
  }

  #next(table: Exclude<keyof typeof counters, 'units'>, most: number): number {
    const index = Atomics.add(this.#words, counters[table], 1);
    if (index >= most) throw new Error(`the fake driver has no more ${table}`);
    return index;
  }

  #fill(at: number, values: readonly number[]): void {
    for (let i = values.length - 1; i >= 0; i--) Atomics.store(this.#words, at + i, values[i] ?? 0);
  }
}

const pausing = new Int32Array(new SharedArrayBuffer(4));

/** Bits of an address beside those of an offset. */
function addressOf(slot: number): bigint {
  return BigInt(slot + 1) << BigInt(OFFSET_BITS);
}

function slotOf(address: bigint): number {
  return Number(address >> BigInt(OFFSET_BITS)) - 1;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Memory of the machine as kernels of one GPU of this process reach it, or, without a GPU, as copies of the driver do. */
export class FakeMemory extends DeviceMemory {
  readonly #machine: FakeMachine;
  readonly #device: number | undefined;
  readonly #regions: (Region | undefined)[] = [];

  /** @param host whose page-locked memory has addresses, too */
  constructor(machine: FakeMachine, host: FakeHost, device?: number) {
    super((address) => host.mappedAt(address));
    this.#machine = machine;
    this.#device = device;
  }

  override atWords(low: number, high: number): Place {
    const slot = (high >>> (OFFSET_BITS - 32)) - 1;
    const region = this.#machine.isLive(slot) ? (this.#regions[slot] ??= this.#machine.regionAt(slot, this.#device)) : undefined;
    if (region === undefined) return super.atWords(low, high);
    return { region, offset: (high & (2 ** (OFFSET_BITS - 32) - 1)) * 2 ** 32 + low };
  }
}

function makeUnnamedFile(): number {
  const folder = mkdtempSync(join(tmpdir(), 'tccl-fake-gpu-'));
  const fd = openSync(join(folder, 'file'), 'w+');
  rmSync(folder, { recursive: true });
  return fd;
}
