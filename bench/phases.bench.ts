/**
 * Where the time of one ADD and one DEL goes: the phases that the plugin reports
 * (TRACE=1 in its environment), medians of many calls, as bars. The phases are
 * those of one process; the time that the system needs before and after it is
 * not included.
 */
import { identity } from "../src/identity.ts";
import { startEtcdOnHost } from "../test/support/etcd-on-host.ts";
import { callOf, type MeasuredPlugin, makePods } from "./support/plugin-candidate.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { prepareProducts } from "./support/product-candidates.ts";
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
  const trace = await new Response(child.stderr).text();
  const spent = PHASES.map((phase) => [phase, Number(new RegExp(`${phase} ([\\d.]+)`).exec(trace)?.[1] ?? 0)]);
  if ((await child.exited) !== 0) throw new Error(`Cannot trace ${command}: ${trace}`);
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
