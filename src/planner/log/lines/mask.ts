/** Ends of names whose values are secret. Keys of InfiniBand (`P_Key`, `lkey`) are none. */
const SECRET_END = String.raw`(?:passw(?:or)?d|passphrase|secret|token|credentials?|(?:api|access|account|private|shared)key|[a-z]{2,20}[_-]key)`;
const NAME = String.raw`(?<![\w-])(?!NCCL_)[\w-]{0,60}${SECRET_END}`;

/** Each has the text before the secret as its first group. Repetitions before a secret are bounded, so time stays linear. */
const secretForms = [
  // HF_TOKEN=x, "api_key": "x", ?token=x
  new RegExp(String.raw`(${NAME}["']?\s?[=:]\s?["']?)[^\s"'&,;]+`, 'gi'),
  // password 'x'
  new RegExp(String.raw`(${NAME} ["'])[^\s"']+`, 'gi'),
  // --password x
  new RegExp(String.raw`((?<![\w-])--[\w-]{0,40}${SECRET_END} {1,4})[^\s"']+`, 'gi'),
  /([?&](?:sig|signature|key)=)[^\s"'&]+/gi,
  /(:\/\/)[^\s/@]{1,300}(?=@)/g,
  /(hooks\.slack\.com\/services\/)[^\s"']+/g,
  /((?<![A-Za-z0-9])(?:hf_|gh[pousr]_|github_pat_|glpat-|xox[abp]-|AKIA|ASIA|eyJ|[Bb]earer {1,4}))[\w./+=-]{12,}/g,
  // A host may be named sk-…, but in small letters.
  /((?<![A-Za-z0-9])sk-)(?=[\w-]{0,80}[A-Z])[\w-]{12,}/g,
];

/** A text without passwords, keys and tokens: what is shown of files is passed on to others. */
export function masked(text: string): string {
  return secretForms.reduce((shown, form) => shown.replace(form, '$1(masked)'), text);
}
