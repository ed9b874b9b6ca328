/** What an installation may leave on a node: files, links, routes, rules, tables of nftables and processes. */
import { identity } from "../../src/identity.ts";
import type { Host } from "./host.ts";

/** The lines of each part. */
export type NodeState = ReadonlyMap<string, readonly string[]>;

/** The logs: administrators read them after a removal too. */
const LOGS = `/var/log/${identity.product}`;

/** What host-local has assigned: data of its IPAM, which a removal keeps as it keeps pools. */
const HOST_LOCAL = "/var/lib/cni/networks";

/** Where the product writes, and where others read what it wrote. */
const DIRECTORIES = [
  "/opt/cni",
  "/etc/cni",
  HOST_LOCAL,
  LOGS,
  `/var/lib/${identity.product}`,
  `/run/${identity.product}`,
  "/etc/NetworkManager",
  "/etc/systemd/network",
  "/run/systemd/network",
];

const COMMANDS: Readonly<Record<string, string>> = {
  files: [
    `for directory in ${DIRECTORIES.join(" ")}; do if [ -e $directory ]; then`,
    "find $directory -type f -exec sha256sum {} + -o -printf '%y %p\\n'; fi; done",
  ].join(" "),
  links: "ip -o link | cut -d: -f2 | cut -d@ -f1",
  routes: "ip -4 route show table all; ip -6 route show table all",
  rules: "ip -4 rule; ip -6 rule",
  tables: "nft list tables",
  // grep ends with 1 if it finds none.
  processes: `ps -eo comm= | { grep -E '^(bird|${identity.product})' || [ $? = 1 ]; }`,
};

/** Throws if a part cannot be read. */
export async function nodeState(host: Host): Promise<NodeState> {
  const parts = Object.entries(COMMANDS).map(async ([part, command]) => {
    const lines = (await host.must(["bash", "-eo", "pipefail", "-c", command])).split("\n");
    return [part, lines.filter(isLasting).toSorted()] as const;
  });
  return new Map(await Promise.all(parts));
}

/** Without what stays after a removal: the logs, and the data of host-local. */
export function leftoversOf(before: NodeState, after: NodeState): readonly string[] {
  const kept = new RegExp(`^\\+ files: .* (${LOGS}|${HOST_LOCAL})(/|$)`);
  return changesOf(before, after).filter((line) => !kept.test(line));
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
