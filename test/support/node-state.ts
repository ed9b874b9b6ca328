/** What an installation may leave on a node: files, links, routes, rules, tables of nftables and processes. */
import { identity } from "../../src/identity.ts";
import type { Host } from "./host.ts";

/** The lines of each part. */
export type NodeState = ReadonlyMap<string, readonly string[]>;

/** Where the product writes, and where others read what it wrote. */
const DIRECTORIES = [
  "/opt/cni",
  "/etc/cni",
  `/var/lib/${identity.product}`,
  `/run/${identity.product}`,
  "/etc/NetworkManager",
  "/etc/systemd/network",
  "/run/systemd/network",
];

const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  files: [
    "sh",
    "-c",
    `find ${DIRECTORIES.join(" ")} -type f -exec sha256sum {} + -o -type l -print 2>/dev/null | sort`,
  ],
  links: ["sh", "-c", "ip -o link | cut -d: -f2 | cut -d@ -f1"],
  routes: ["sh", "-c", "ip -4 route show table all; ip -6 route show table all"],
  rules: ["sh", "-c", "ip -4 rule; ip -6 rule"],
  tables: ["nft", "list", "tables"],
  processes: ["sh", "-c", `ps -eo comm= | grep -E '^(bird|${identity.product})'`],
};

export async function nodeState(host: Host): Promise<NodeState> {
  const parts = Object.entries(COMMANDS).map(async ([part, command]) => {
    const { stdout } = await host.run(command);
    return [part, stdout.split("\n").filter(isLasting).toSorted()] as const;
  });
  return new Map(await Promise.all(parts));
}

/** Neighbour discovery and kernel caches come and go. */
function isLasting(line: string): boolean {
  return line.trim() !== "" && !/^(broadcast|multicast|anycast|local|ff00::)|expires|\bcache\b/.test(line);
}

/** Which lines there were not before, and which are gone: `+ files: …`, `- links: …`. */
export function changesOf(before: NodeState, after: NodeState): readonly string[] {
  const added = (sign: string, from: NodeState, to: NodeState) =>
    [...to].flatMap(([part, lines]) =>
      lines.filter((line) => !from.get(part)?.includes(line)).map((line) => `${sign} ${part}: ${line}`),
    );
  return [...added("+", before, after), ...added("-", after, before)];
}
