import { ChannelPicker } from './channel-picker.js';
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { formatTime } from '../../planner/plan/overview/format.js';
import { collectives } from '../../planner/tuning/names.js';
import { lanesPicture, type Motion, motionPicture } from '../../view/motion/motion.js';
import type { ShownMotion } from '../messages.js';
import { CollectiveField } from './choice.js';
import { Drawing } from './drawing.js';
import { change, phoneWidth, state } from './store.js';

const sizes = [
  ['8 KiB', 2 ** 13],
  ['64 KiB', 2 ** 16],
  ['512 KiB', 2 ** 19],
  ['1 MiB', 2 ** 20],
  ['4 MiB', 2 ** 22],
  ['16 MiB', 2 ** 24],
] as const;

/** A call in time, on one channel. */
export function MotionView({ part }: { readonly part: ShownMotion }): JSX.Element {
  const { bytes } = state.value;
  return (
    <>
      <div class="row">
        <CollectiveField of={collectives} label="Call" />
        <label class="inline">
          Size
          <select onChange={({ currentTarget: { value } }) => change({ bytes: Number(value) })}>
            {[...sizes, ...(sizes.some(([, each]) => each === bytes) ? [] : [[`${bytes} B`, bytes] as const])].map(
              ([label, each]) => (
                <option key={each} value={each} selected={each === bytes}>
                  {label}
                </option>
              ),
            )}
          </select>
        </label>
        <ChannelPicker nChannels={part.nChannels} />
      </div>
      <p>{part.summary}</p>
      {part.motion === undefined ? null : <Player motion={part.motion} />}
    </>
  );
}

/** Seconds in which a call is played. */
const PLAY_SECONDS = 12;
const SLIDER_STEPS = 1000;

function Player({ motion }: { readonly motion: Motion }): JSX.Element {
  const { startUs, endUs } = motion;
  const [part, setPart] = useState(0.1);
  const [isPlaying, setPlaying] = useState(false);
  useEffect(() => {
    if (!isPlaying) return;
    let before: number | undefined;
    let frame = requestAnimationFrame(function next(now) {
      const passed = before === undefined ? 0 : (now - before) / 1000 / PLAY_SECONDS;
      before = now;
      setPart((last) => (last + passed >= 1 ? 0 : last + passed));
      frame = requestAnimationFrame(next);
    });
    return () => cancelAnimationFrame(frame);
  }, [isPlaying]);
  const timeUs = startUs + (endUs - startUs) * part;
  return (
    <>
      <div class="row player">
        <button type="button" aria-pressed={isPlaying} onClick={() => setPlaying(!isPlaying)}>
          {isPlaying ? 'Pause' : 'Play'}
        </button>
        <input
          type="range"
          aria-label="Time since the launch"
          aria-valuetext={formatTime(timeUs)}
          min={0}
          max={SLIDER_STEPS}
          value={Math.round(part * SLIDER_STEPS)}
          onInput={({ currentTarget: { valueAsNumber } }) => setPart(valueAsNumber / SLIDER_STEPS)}
        />
        <output>{formatTime(timeUs)}</output>
      </div>
      <Drawing picture={motionPicture(motion, timeUs)} name="motion" />
      <Drawing picture={lanesPicture(motion, timeUs, phoneWidth.value)} name="slices" />
      <p class="hint">
        A dot is a slice on its way. A number at a receiver counts the slices in its FIFO: the sender has credits for 8 steps of
        each connection, and stops when they are used.
      </p>
    </>
  );
}
