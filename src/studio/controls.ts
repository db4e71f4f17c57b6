/** Options of the command line by the controls of the page that do the same. */
const controls: readonly (readonly [option: RegExp, control: string])[] = [
  [/--hardware (?=")/g, 'the field «Hardware», as '],
  [/--hardware\b/g, 'the field «Hardware»'],
  [/--env (?=\w+=)/g, ''],
  [/--nodes\b/g, 'the field «Machines»'],
  [/, as tccl topo list has it/g, ' in the field «Machine of the catalogue»'],
];

/** A sentence of the planner, with the page's own controls for options of `tccl plan`. */
export function withControls(text: string): string {
  return controls.reduce((changed, [option, control]) => changed.replace(option, control), text);
}
