import type { KernelFeature, KernelFeatures } from "../host/facts.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { Call, Host, Terminal } from "../main/context.ts";
import { paint } from "../terminal/paint.ts";

export async function run(context: Call & Terminal & Host, given: Given): Promise<ExitCode> {
  const found = await context.readKernelFeatures();
  const ok = found.features.every((feature) => stateOf(feature) !== "missing");
  if (wantsJson(given)) context.stdout(`${JSON.stringify({ ok, ...found }, undefined, 2)}\n`);
  else print(found, context);
  return ok ? EXIT_OK : EXIT_FAILED;
}

type State = "ok" | "warning" | "missing";

function stateOf({ failure, need }: KernelFeature): State {
  if (failure === undefined) return "ok";
  return need === "always" ? "missing" : "warning";
}

function print({ release, features }: KernelFeatures, context: Call & Terminal): void {
  const { green, yellow, red } = paint(context);
  const colour = { ok: green, warning: yellow, missing: red };
  const width = Math.max(0, ...features.map(({ name }) => name.length));
  context.stdout(`Kernel ${release}\n`);
  for (const feature of features) {
    const { name, neededBy, failure, module } = feature;
    const state = stateOf(feature);
    context.stdout(`${colour[state](state.padEnd(7))} ${name.padEnd(width)}  needed by ${neededBy}\n`);
    if (failure === undefined) continue;
    context.stdout(`${" ".repeat(8)}${failure}${module === undefined ? "" : `; run: modprobe ${module}`}\n`);
  }
}
