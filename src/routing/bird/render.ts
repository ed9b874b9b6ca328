/**
 * The configuration of BIRD 2 for a plan. Pure.
 *
 *   announced ─▶ static routes ─▶ table ─▶ export filters ─▶ peers
 *   peers ─▶ import filters ─▶ table ─▶ kernel (only what was learned by BGP, and no network that has a tunnel)
 *   interfaces, routes of others in the kernel ─▶ table: they resolve next hops
 *
 * BIRD compares a new configuration with its own: sessions stay as they are if only routes and filters differ.
 */
import { type Family, formatAddress } from "../../ip/address.ts";
import { formatPrefix, type Prefix, parsePrefix } from "../../ip/prefix.ts";
import type { BgpLog, BgpPlan } from "../bgp/plan.ts";
import { kernelExport, kernelImport, OWN_ROUTES, sharedFunctions } from "./filters.ts";
import { renderSession, sessionProblem } from "./session.ts";
import { block, isQuotable, quotedText } from "./text.ts";

export interface BirdSettings {
  readonly logFile: string;
  /** Patterns of interfaces of pods and tunnels. */
  readonly ownInterfaces: readonly string[];
  /** The origin of the agent's own routes in the kernel. */
  readonly agentProtocol: number;
}

export interface BirdConfiguration {
  readonly text: string;
  /** For people: what of the plan BIRD cannot carry out. */
  readonly problems: readonly string[];
}

/** Seconds. BIRD looks at the kernel this often: a route that was deleted by hand is back by then. */
const SCAN_SECONDS = 2;
/**
 * A BIRD that was started again neither removes nor adds routes before all its peers are back, or this time is over. A
 * peer that lives is back within its pause between two attempts; a dead one must not delay new routes for BIRD's 240 s.
 */
const RECOVERY_SECONDS = 20;
const LOG_BYTES = 4 << 20;
const FAMILIES: readonly Family[] = [4, 6];

const LOGGED: Readonly<Record<BgpLog, string>> = {
  Debug: "all",
  Info: "{ info, trace, remote, warning, error, auth, fatal, bug }",
  Warning: "{ remote, warning, error, auth, fatal, bug }",
  Error: "{ error, auth, fatal, bug }",
  Fatal: "{ fatal, bug }",
};

export function renderBird(plan: BgpPlan, settings: BirdSettings): BirdConfiguration {
  const sessions = plan.sessions.map((session) => ({ session, problem: sessionProblem(session, plan) }));
  const interfaces = [...settings.ownInterfaces, ...plan.ignoredInterfaces];
  const parts = [
    "# Written by the node agent, which replaces it at every change.",
    globalOptions(plan, settings),
    block("protocol device", [`scan time ${SCAN_SECONDS};`]),
    block("protocol direct", ["ipv4;", "ipv6;", interfaceList(interfaces.filter(isQuotable))]),
    ...FAMILIES.flatMap((family) => [
      kernelProtocol(plan, settings, family),
      ownRoutes(plan, family),
      ...sharedFunctions(plan, family),
    ]),
    ...sessions.flatMap(({ session, problem }) => (problem === undefined ? [renderSession(session, plan)] : [])),
  ];
  const problems = [
    ...sessions.flatMap(({ problem }) => problem ?? []),
    ...interfaces
      .filter((name) => !isQuotable(name))
      .map((name) => `the interface ${JSON.stringify(name)} is not ignored: BIRD cannot read its name`),
  ];
  return { text: `${parts.join("\n\n")}\n`, problems };
}

/** The configuration that ends all sessions: the kernel loses the routes that were learned. */
export function renderEmptyBird(settings: BirdSettings): string {
  return renderBird(NO_BGP, settings).text;
}

/** Announces nothing and has no session. */
export const NO_BGP: BgpPlan = {
  routerId: { family: 4, value: 1n },
  asNumber: 0,
  addresses: {},
  listenPort: 0,
  listenOn: "all",
  log: "Info",
  announced: [],
  exported: [],
  accepted: [],
  withheld: [],
  services: [],
  tunnelled: [],
  advertisements: [],
  ignoredInterfaces: [],
  sessions: [],
  problems: [],
};

function globalOptions({ routerId, log }: BgpPlan, { logFile }: BirdSettings): string {
  return [
    `log ${quotedText(logFile)} ${LOG_BYTES} ${quotedText(`${logFile}.old`)} ${LOGGED[log]};`,
    "timeformat protocol iso long;",
    "timeformat route iso long;",
    "timeformat log iso long ms;",
    log === "Debug" ? "debug protocols all;" : "debug protocols { states };",
    `router id ${formatAddress(routerId)};`,
    `graceful restart wait ${RECOVERY_SECONDS};`,
  ].join("\n");
}

function interfaceList(ignored: readonly string[]): string {
  return `interface ${[...ignored.map((name) => `-${quotedText(name)}`), `"*"`].join(", ")};`;
}

/** Behind the routes of the agent and of pods, which have 0 and 1024. */
const METRIC = { 4: 32, 6: 2048 } as const;

function kernelProtocol(plan: BgpPlan, { agentProtocol }: BirdSettings, family: Family): string {
  return block(`protocol kernel kernel${family}`, [
    "learn;",
    "persist;",
    `scan time ${SCAN_SECONDS};`,
    "graceful restart on;",
    "merge paths on;",
    `metric ${METRIC[family]};`,
    `${block(`ipv${family}`, [`${kernelImport(agentProtocol)};`, `${kernelExport(plan, family)};`])};`,
  ]);
}

function ownRoutes({ announced }: BgpPlan, family: Family): string {
  const own = announced.filter(({ network }) => network.family === family);
  return block(`protocol static ${OWN_ROUTES[family]}`, [
    `ipv${family};`,
    ...own.map((prefix) => `route ${formatPrefix(prefix)} blackhole;`),
  ]);
}

/** What a configuration of `renderBird()` announces, also one of another release. */
export function announcedBy(text: string): readonly Prefix[] {
  return Array.from(
    text.matchAll(/^\s*route (\S+) blackhole;$/gm),
    ([, network = ""]) => parsePrefix(network) ?? [],
  ).flat();
}
