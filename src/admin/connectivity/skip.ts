/** What a connectivity test leaves out on request. Pure. */

export const SKIP_WORDS = ["service", "host", "host-port", "api-server", "dns", "policy"] as const;

export type SkipWord = (typeof SKIP_WORDS)[number];

const TITLES: Readonly<Record<SkipWord, RegExp>> = {
  service: /^pod to Service$/,
  host: /^(pod to host|host to pod)$/,
  "host-port": /^pod to host port$/,
  "api-server": /^pod to API server$/,
  dns: /^pod to DNS$/,
  policy: /^policy /,
};

export function isSkipped(title: string, skip: ReadonlySet<SkipWord>): boolean {
  return [...skip].some((word) => TITLES[word].test(title));
}

export function skipWords(given: readonly string[]): ReadonlySet<SkipWord> {
  return new Set(SKIP_WORDS.filter((word) => given.includes(word)));
}
