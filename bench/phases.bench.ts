/**
 * Where the time of one ADD and one DEL goes: what the plugin itself tells of
 * its phases (TRACE=1 in its environment), the median of many calls, as bars.
 * Phases are of one process; what the system spends before and after it is not
 * among them.
 */
import { identity } from "../src/identity.ts";
import { startEtcdOnHost } from "../test/support/etcd-on-host.ts";
import { callOf, type MeasuredPlugin, makePods } from "./support/plugin-contender.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { prepareProducts } from "./support/product-contenders.ts";
import { quantileOf } from "./support/statistics.ts";

const ROUNDS = 40;
const PHASES = ["boot", "decode", "datastore", "kernel", "exit"] as const;
const SHADES = ["█", "▓", "▒", "░", "·"] as const;
const CELLS_PER_MILLISECOND = 2;

type Spent = Readonly<Record<(typeof PHASES)[number], number>>;

await onPrivateHost(import.meta.path, {
  prepare: async (host): Promise<readonly MeasuredPlugin[]> => prepareProducts(host, await startEtcdOnHost(host)),
  measure: async (plugins) => {
    await makePods(1);
    const calls = new Map<string, Spent[]>();
    for (let round = 0; round < ROUNDS; round++) {
      for (const plugin of plugins) {
        for (const command of ["ADD", "DEL"] as const) {
          const title = `${command}, ${plugin.name.split(", ")[1]}`;
          calls.set(title, [...(calls.get(title) ?? []), await trace(plugin, command, round)]);
        }
      }
    }
    console.log(SHADES.map((shade, index) => `${shade} ${PHASES[index]}`).join("   "));
    for (const [title, spent] of [...calls].sort()) console.log(barOf(title, spent));
  },
});

async function trace(plugin: MeasuredPlugin, command: "ADD" | "DEL", round: number): Promise<Spent> {
  const { command: program, environment, stdin } = callOf(plugin, command, { round }, 0);
  const child = Bun.spawn([...program], {
    env: { ...environment, [`${identity.environmentPrefix}TRACE`]: "1" },
    stdin: new TextEncoder().encode(stdin ?? ""),
    stdout: "ignore",
    stderr: "pipe",
  });
  const said = await new Response(child.stderr).text();
  const spent = PHASES.map((phase) => [phase, Number(new RegExp(`${phase} ([\\d.]+)`).exec(said)?.[1] ?? 0)]);
  if ((await child.exited) !== 0) throw new Error(`Cannot trace ${command}: ${said}`);
  return Object.fromEntries(spent);
}

function barOf(title: string, spent: readonly Spent[]): string {
  const medians = PHASES.map((phase) =>
    quantileOf(
      spent.map((each) => each[phase]),
      0.5,
    ),
  );
  const cells = medians.map((median, index) =>
    (SHADES[index] ?? "").repeat(Math.round(median * CELLS_PER_MILLISECOND)),
  );
  const all = medians.reduce((sum, median) => sum + median, 0).toFixed(1);
  const figures = PHASES.map((phase, index) => `${phase} ${medians[index]?.toFixed(1)}`).join(", ");
  return `${title.padEnd(16)} ${cells.join("")} ${all} ms (${figures})`;
}
