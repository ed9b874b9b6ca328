/** What `policy explain` says in the recipe that protects SSH, before the port is closed. */

/** The first lets administrators in, the second nobody. */
export const SSH_RULES = [1, 2].map((rule) => `GlobalNetworkPolicy "ssh", ingress rule ${rule}`) as [string, string];

/** What would decide if SSH were not a failsafe port: `allowed by GlobalNetworkPolicy "ssh", ingress rule 1`. */
export function withoutFailsafe(printed: string): readonly string[] {
  const lines = printed.matchAll(/^ +Because: +TCP port 22 is a failsafe port .*; without it: (.*?) \(spec\./gm);
  return Array.from(lines, ([, decision = ""]) => decision);
}
