/** Converts the text of a resolv.conf to the `dns` of a result. */
import type { CniDns } from "../../cni/result.ts";

export function parseResolvConf(content: string): CniDns {
  const nameservers: string[] = [];
  const search: string[] = [];
  const options: string[] = [];
  let domain: string | undefined;
  for (const line of content.split("\n")) {
    const [keyword = "", ...values] = line.trim().split(/\s+/);
    const [first] = values;
    if (first === undefined) continue;
    // The first word of a comment begins with # or ; so it does not match.
    if (keyword === "nameserver") nameservers.push(first);
    else if (keyword === "domain") domain = first;
    else if (keyword === "search") search.push(...values);
    else if (keyword === "options") options.push(...values);
  }
  return { nameservers, domain, search, options };
}
