/** The file with all measurements of scale. Each part is measured on its own, so each has its own time, commit and host. */
import { join } from "node:path";
import { scaleCharts } from "../../sim/scale/charts.ts";
import type { Measured } from "../../sim/scale/measured.ts";
import { costsOf } from "../../sim/scale/model.ts";
import { scalePage } from "../../sim/scale/page.ts";
import { scaleChartsAsSvg } from "../../sim/scale/plot.ts";
import { environment } from "./report.ts";

const DOCS = join(import.meta.dir, "../../docs");
const FILE = join(DOCS, "scale.json");

async function readScale(): Promise<Partial<Measured>> {
  const file = Bun.file(FILE);
  return (await file.exists()) ? await file.json() : {};
}

export async function writeAgent(name: string, found: object): Promise<void> {
  const { agents = {}, ...parts } = await readScale();
  await write({ ...parts, agents: { ...agents, [name]: { ...environment(), ...found } } });
}

export async function writeRestart(name: string, found: object): Promise<void> {
  const { restarts, ...parts } = await readScale();
  await write({ ...parts, restarts: { ...restarts, [name]: { ...environment(), ...found } } });
}

export async function writePart(name: Exclude<keyof Measured, "agents" | "restarts">, found: object): Promise<void> {
  await write({ ...(await readScale()), [name]: { ...environment(), ...found } });
}

/** If all parts are measured. */
export async function writeScalePage(): Promise<void> {
  const { agents, many, fanOut, apiFanOut, restarts, real, tenants } = await readScale();
  if (!agents || !many || !fanOut || !apiFanOut || !restarts || !real || !tenants) return;
  const measured = { agents, many, fanOut, apiFanOut, restarts, real, tenants };
  await Bun.write(join(DOCS, "scale.md"), scalePage(measured));
  await Bun.write(join(DOCS, "scale.svg"), scaleChartsAsSvg(scaleCharts(measured, costsOf(measured))));
  console.log("written to docs/scale.md and docs/scale.svg");
}

async function write(all: object): Promise<void> {
  await Bun.write(FILE, `${JSON.stringify(all, shortened, 2)}\n`);
  console.log("written to docs/scale.json");
}

/** More digits than a measurement has would only be noise in the file. */
function shortened(_key: string, value: unknown): unknown {
  return typeof value === "number" ? Number(value.toPrecision(6)) : value;
}
