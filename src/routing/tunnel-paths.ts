/**
 * What probes between node agents say about the VXLAN tunnels, and whether the checksums of the packets inside are left to
 * the network card. Pure.
 *
 *   nothing passes ──────────────────────▶ the network drops the port of VXLAN, if the nodes are there
 *   small packets pass, large ones do not ▶ the network has a smaller MTU
 *   both pass, TCP does not, or crawls ───▶ the card damages what it computes: offload off, if every node that answers says so
 *
 * Echo requests and datagrams without a checksum need nothing from the card; TCP leaves its checksum to it.
 */

/** Of one path: from this node to another. */
export interface PathResult {
  readonly node: string;
  readonly small: "passed" | "lost";
  /** Of a packet as large as the device allows. */
  readonly large: "passed" | "lost";
  /**
   * `crawling`: it loses many of its packets, and datagrams of the same size are not lost. `unknown`: no agent answers
   * there, such as one of a former release, or packets are lost anyway.
   */
  readonly tcp: "passed" | "crawling" | "lost" | "unknown";
  /** Of a crawling path. */
  readonly loss?: PathLoss;
  /** The largest packet that passes, if large ones are lost. */
  readonly workingMtu?: number;
  /** If nothing passes: the address of the node answers outside of the tunnel. */
  readonly isThere?: boolean;
}

/** In percent. */
export interface PathLoss {
  readonly tcp: number;
  readonly datagrams: number;
}

/** Packets by TCP, and then datagrams of the same size, about as many. */
export interface ComparedTurn {
  readonly arrived: "all" | "some" | "nothing";
  /** Segments, each counted once. */
  readonly segments: number;
  /** Segments that were lost, so that they were sent again. */
  readonly repeated: number;
  readonly datagrams: number;
  readonly lostDatagrams: number;
}

export type OffloadSetting = "Auto" | "On" | "Off";

/** Why the offload of a device is off. It is kept as long as the device. */
export interface OffloadRecord {
  readonly by: "setting" | "kernel" | "probes";
  readonly reason: string;
}

/** What is known of a device. */
export interface OffloadState {
  readonly record?: OffloadRecord;
  /** Rounds one after the other in which only TCP failed, on every path that says something about it. */
  readonly failures: number;
}

export interface OffloadDecision extends OffloadState {
  /** `undefined`: it stays as it is. */
  readonly wanted: "on" | "off" | undefined;
}

/** One lost packet, or a node that restarts, is not a broken card. */
const FAILURES_NEEDED = 3;
const MOST_PEERS = 3;
/** A single node that does not answer may be starting. */
const WITNESSES_NEEDED = 2;

/** Of what TCP sends: less than this a network may lose, and TCP gets along with. */
const MUCH = 1 / 10;
/** With large packets few are sent: so many lost ones are not chance. */
const MANY = 10;
/** A path that loses packets loses both alike: so much less of the datagrams is not chance. */
const MUCH_LESS = 1 / 4;
/** A connection need not begin on a path that loses packets, but one of two does. */
const NOTHING_TWICE = 2;

/** One more turn would say the same. */
export function isNothingArriving(turns: readonly ComparedTurn[]): boolean {
  return turns.length >= NOTHING_TWICE && turns.every(({ arrived }) => arrived === "nothing");
}

/** Only loss counts: a path that is slow is not a broken card. */
export function judgeTcp(turns: readonly ComparedTurn[]): Pick<PathResult, "tcp" | "loss"> {
  const sum = (field: Exclude<keyof ComparedTurn, "arrived">) => turns.reduce((all, turn) => all + turn[field], 0);
  const isLost = isNothingArriving(turns);
  const sent = sum("segments") + sum("repeated");
  const tcp = isLost ? 1 : sum("repeated") / Math.max(sent, 1);
  const datagrams = sum("lostDatagrams") / Math.max(sum("datagrams"), 1);
  const isOnlyTcp = datagrams <= tcp * MUCH_LESS;
  if (isLost) return { tcp: isOnlyTcp ? "lost" : "unknown" };
  if (tcp < MUCH || sum("repeated") < MANY || !isOnlyTcp) return { tcp: "passed" };
  return { tcp: "crawling", loss: { tcp: Math.round(tcp * 100), datagrams: Math.round(datagrams * 100) } };
}

/** The next ones by name: each node is probed by as many as it probes itself, and the choice stays while they do. */
export function choosePeers(own: string, others: readonly string[]): readonly string[] {
  const sorted = others.filter((name) => name !== own).toSorted();
  const next = sorted.findIndex((name) => name > own);
  const start = Math.max(next, 0);
  return [...sorted.slice(start), ...sorted.slice(0, start)].slice(0, MOST_PEERS);
}

/** `round`: the results of the last round of probes; `undefined` if there was none since. */
export function decideOffload(
  { record, failures }: OffloadState,
  {
    setting,
    needsOwnChecksums,
    round,
  }: {
    readonly setting: OffloadSetting;
    /** Whether the kernel is known to send wrong checksums. */
    readonly needsOwnChecksums: boolean;
    readonly round?: readonly PathResult[];
  },
): OffloadDecision {
  if (setting === "On") return { wanted: "on", failures: 0 };
  if (setting === "Off") {
    return { wanted: "off", failures: 0, record: { by: "setting", reason: "vxlanChecksumOffload is Off" } };
  }
  if (needsOwnChecksums) {
    const reason = "the kernel is older than 5.8, and sends wrong checksums with it";
    return { wanted: "off", failures: 0, record: { by: "kernel", reason } };
  }
  const kept = record?.by === "probes" ? record : undefined;
  // What a setting turned off is on again; what somebody turned off by hand stays.
  const idle = { wanted: record?.by === "setting" ? ("on" as const) : undefined, ...(kept && { record: kept }) };
  if (round === undefined) return { ...idle, failures };
  const now = isOnlyTcpLost(round) ? failures + 1 : 0;
  // TCP needs both ends without it, and the other one may follow later: what is off is never turned on again here.
  if (now < FAILURES_NEEDED || kept !== undefined) return { ...idle, failures: now };
  return { wanted: "off", failures: 0, record: { by: "probes", reason: describeBroken(round) } };
}

/**
 * A node whose own card is broken cannot answer; if others can, the card of this node is not the cause. As long as an agent
 * does not answer yet, such as in an upgrade, nobody can say that all others cannot.
 */
function isOnlyTcpLost(round: readonly PathResult[]): boolean {
  return round.some(isTcpLost) && round.every((path) => path.large === "lost" || isTcpLost(path));
}

/** Its agent does not answer: one of a former release, or one that starts. */
export function isUnanswered({ large, tcp }: PathResult): boolean {
  return large === "passed" && tcp === "unknown";
}

function isTcpLost({ small, large, tcp }: PathResult): boolean {
  return small === "passed" && large === "passed" && (tcp === "lost" || tcp === "crawling");
}

function describeBroken(round: readonly PathResult[]): string {
  const broken = round.filter(isTcpLost);
  const shares = broken.map(({ node, loss }) => {
    const share = loss === undefined ? "all" : `${loss.tcp} %`;
    return `${share} of its packets to ${names([{ node }])}${loss === undefined ? "" : `, of datagrams ${loss.datagrams} %`}`;
  });
  const tcp = broken.some(({ loss }) => loss !== undefined) ? `TCP lost ${shares.join("; ")}` : "TCP did not";
  return `small and large packets without a checksum of the card passed to ${names(broken)}, and ${tcp}: the network card, or that of the hypervisor, damages checksums inside of VXLAN`;
}

export interface DescribedDevice {
  readonly name: string;
  readonly mtu: number;
  /** What it adds to each packet. */
  readonly headerLength: number;
  readonly port: number;
}

/** For people, of one device: what is wrong, or was put right. `isLasting`: the last rounds said the same. */
export function describePaths(
  device: DescribedDevice,
  { record, failures }: OffloadState,
  { round, isLasting }: { readonly round: readonly PathResult[]; readonly isLasting: boolean },
): readonly string[] {
  const { name } = device;
  const lost = round.filter(({ small }) => small === "lost");
  const narrow = round.filter(({ small, large }) => small === "passed" && large === "lost");
  return [
    ...(record?.by === "probes"
      ? [`Checksum offload of ${name} is off: ${record.reason}. To try it again, set vxlanChecksumOffload to On`]
      : []),
    ...(record?.by === "probes" && failures >= FAILURES_NEEDED
      ? [
          `TCP does not pass ${name} to ${names(round.filter(isTcpLost))}, or only slowly, without checksum offload of this node either`,
        ]
      : []),
    ...(isLasting && round.length > 0 && lost.length === round.length ? [describeLost(device, lost)] : []),
    ...(isLasting ? narrow : []).map((path) => describeNarrow(device, path)),
    ...(isLasting && failures === 0 && record === undefined ? describeUndecided(name, round) : []),
  ];
}

/** Offload is on, by the setting or because some nodes are reached. */
function describeUndecided(device: string, round: readonly PathResult[]): readonly string[] {
  const broken = round.filter(isTcpLost);
  const passing = round.filter(({ tcp }) => tcp === "passed");
  if (broken.length === 0) return [];
  const problem = `TCP does not pass ${device} to ${names(broken)}, or only slowly`;
  if (passing.length > 0)
    return [`${problem}, and passes to ${names(passing)}: look at the network cards of the former`];
  return [
    `${problem}: network cards may damage checksums inside of VXLAN. Set vxlanChecksumOffload to Auto or Off on all of these nodes, and on this one`,
  ];
}

/** A node that is switched off, or a host endpoint of a former release, does not answer either. */
function describeLost({ name, port }: DescribedDevice, lost: readonly PathResult[]): string {
  const there = lost.filter(({ isThere }) => isThere === true);
  const remedy = 'open it, or set another vxlanPort, such as 8472, in NodeAgentConfiguration "default"';
  return there.length >= WITNESSES_NEEDED
    ? `Nothing passes ${name} to ${names(there)}, whose own addresses answer: a firewall or the network between the nodes drops UDP port ${port}, as vSphere does with 4789; ${remedy}`
    : `No answer by ${name} from ${names(lost)}: if pods there are not reached either, and the node runs, a firewall or the network between the nodes may drop UDP port ${port}; ${remedy}`;
}

/** The device follows the interface below it, and so do new pods. */
function describeNarrow(
  { name, mtu, headerLength }: DescribedDevice,
  { node, workingMtu }: Pick<PathResult, "node" | "workingMtu">,
): string {
  const [size, below] = workingMtu === undefined ? ["some", "a smaller one"] : [workingMtu, workingMtu + headerLength];
  return `Packets of more than ${size} bytes are lost in ${name} to ${names([{ node }])}, whose MTU is ${mtu}: the network between the nodes carries less than their interfaces say; set the MTU of those interfaces to ${below} on all nodes, which tunnels and new pods follow`;
}

/** Whether the next round must come soon. */
export function isSuspicious({ failures }: OffloadState, round: readonly PathResult[]): boolean {
  return failures > 0 || round.some((path) => path.small === "lost" || path.large === "lost" || isTcpLost(path));
}

function names(paths: readonly Pick<PathResult, "node">[]): string {
  return `${paths.length === 1 ? "node" : "nodes"} ${paths.map(({ node }) => `"${node}"`).join(", ")}`;
}
