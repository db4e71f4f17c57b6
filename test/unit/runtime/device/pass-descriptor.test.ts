import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { DescriptorMailbox, sendDescriptor } from '../../../../src/runtime/device/pass-descriptor.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-descriptor-'));
const opened: DescriptorMailbox[] = [];
afterEach(() => {
  for (const each of opened.splice(0)) each.close();
});
const mailboxOf = (): DescriptorMailbox => {
  const mailbox = new DescriptorMailbox();
  opened.push(mailbox);
  return mailbox;
};
const token = (byte: number): Uint8Array => new Uint8Array(16).fill(byte);
const fileOf = (text: string): number => {
  const path = join(folder, 'file');
  writeFileSync(path, text);
  const fd = openSync(path, 'r');
  rmSync(path);
  return fd;
};
const nOpen = (): number => readdirSync('/proc/self/fd').length;

it('a descriptor comes with its file, which has no name', () => {
  const [mailbox, fd] = [mailboxOf(), fileOf('contents')];
  sendDescriptor(fd, mailbox.address, token(1));
  closeSync(fd);
  const received = mailbox.receive(token(1));
  expect(readFileSync(received, 'utf8')).toBe('contents');
  closeSync(received);
});

it('messages without the token are dropped, and their descriptors closed', () => {
  const [mailbox, fd] = [mailboxOf(), fileOf('right')];
  const other = fileOf('other');
  const before = nOpen();
  for (const byte of [2, 3]) sendDescriptor(other, mailbox.address, token(byte));
  sendDescriptor(fd, mailbox.address, token(1));
  const received = mailbox.receive(token(1));
  expect(readFileSync(received, 'utf8')).toBe('right');
  closeSync(received);
  expect(nOpen()).toBe(before);
  for (const each of [fd, other]) closeSync(each);
});

it('a mailbox without a message, and one that is closed, give an error', () => {
  const mailbox = new DescriptorMailbox();
  expect(() => mailbox.receive(token(1))).toThrow('recvmsg failed: EAGAIN');
  const { address } = mailbox;
  mailbox.close();
  const fd = fileOf('');
  expect(() => sendDescriptor(fd, address, token(1))).toThrow('sendmsg failed: ECONNREFUSED');
  expect(() => sendDescriptor(9999, mailboxOf().address, token(1))).toThrow('sendmsg failed: EBADF');
  closeSync(fd);
});
