import type { KernelFeature, KernelFeatures } from "../host/facts.ts";
import { type Command, type Context, EXIT_FAILED, EXIT_OK, wantsJson } from "../main/command.ts";
import { paint } from "../terminal/paint.ts";

export const nodeChecksystem: Command = {
  kind: "command",
  name: "checksystem",
  summary: "Check whether the kernel of this host has what the product needs",
  description: [
    "Runs on the host, as root. Tries each feature in a network namespace of its own, which is gone afterwards: links, tunnels,",
    "tables and sets of nftables, connection tracking, and limits of bandwidth. No list of modules is compared: what is built",
    "into the kernel or loaded on demand counts.",
    "A feature that only some settings need is a warning if it is missing. The exit code is 1 if one is missing that is always needed.",
  ].join("\n"),
  options: [
    {
      name: "kernel-config",
      value: "FILE",
      summary: "Accepted for scripts of other tools, and not read: the kernel itself is asked",
    },
  ],
  versionCheck: "none",
  examples: [
    { command: "node checksystem", does: "Can this host be a node?" },
    { command: "node checksystem -o json", does: "As JSON for a script" },
  ],
  async run(context, given) {
    const found = await context.readKernelFeatures();
    const ok = found.features.every((feature) => stateOf(feature) !== "missing");
    if (wantsJson(given)) context.stdout(`${JSON.stringify({ ok, ...found }, undefined, 2)}\n`);
    else print(found, context);
    return ok ? EXIT_OK : EXIT_FAILED;
  },
};

type State = "ok" | "warning" | "missing";

function stateOf({ failure, need }: KernelFeature): State {
  if (failure === undefined) return "ok";
  return need === "always" ? "missing" : "warning";
}

function print({ release, features }: KernelFeatures, context: Context): void {
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
