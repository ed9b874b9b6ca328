/**
 * The layers of the product (docs/architecture.md): a module may import modules of
 * lower layers, never of a higher one, and of its own layer only if
 * `SAME_LAYER` says so.
 */
const LAYERS = [
  [
    "identity",
    "version",
    "errors",
    "redaction",
    "effect",
    "bytes",
    "counted",
    "system-call",
    "file-status",
    "load-once",
    "parse-json",
    "quote",
    "yaml",
    "unified-diff",
    "timers",
    "limited-connections",
  ],
  ["ip", "selector"],
  ["model", "cni", "config"],
  ["linux", "kube", "log", "health", "grpc"],
  ["datastore"],
  ["ipam", "policy", "firewall", "routing", "mesh"],
  ["plugin", "chained"],
  ["upkeep"],
  ["agent", "sidecar", "controllers", "operator", "admin", "upgrade"],
  ["bin"],
];

const SAME_LAYER = {
  "system-call": ["bytes"],
  "file-status": ["system-call"],
  quote: ["redaction"],
  "limited-connections": ["timers"],
  config: ["model", "cni"],
  // `config check` decodes the options of the chained plugins, `ipam explain` annotations of pods: with the plugins' own
  // decoders, which are pure; see admin-decoders-only.
  // `install` and `status` render and complete an Installation exactly as the operator does; see admin-operator-pure-parts.
  // Of the agent it asks BIRD, by the agent's own client; see admin-asks-bird.
  admin: ["upgrade", "operator", "agent"],
  // The objects of a release are those that the operator renders; its pure parts only.
  upgrade: ["operator"],
};

const pathOf = (module) => `^src/${module}(/|\\.ts$|\\.test\\.ts$)`;

const rules = LAYERS.flatMap((layer, level) =>
  layer.map((module) => {
    const allowed = new Set([module, ...(SAME_LAYER[module] ?? [])]);
    const forbidden = LAYERS.slice(level)
      .flat()
      .filter((other) => !allowed.has(other));
    if (forbidden.length === 0) return undefined;
    return {
      name: `layer-${level}-${module}`,
      comment: `${module}/ is in layer ${level}: it may import the lower layers${level === 0 ? " (there are none)" : ""}`,
      severity: "error",
      from: { path: pathOf(module) },
      to: { path: forbidden.map(pathOf) },
    };
  }),
).filter((rule) => rule !== undefined);

module.exports = {
  forbidden: [
    ...rules,
    {
      name: "no-unknown-module",
      comment: "every file of src/ is in a module of the table of layers",
      severity: "error",
      from: { path: "^src/", pathNot: LAYERS.flat().map(pathOf) },
      to: {},
    },
    {
      name: "no-unknown-module-imported",
      comment: "nor is one imported that imports nothing itself, which the rule above does not see",
      severity: "error",
      from: {},
      to: { path: "^src/", pathNot: LAYERS.flat().map(pathOf) },
    },
    {
      name: "no-test-in-product",
      comment: "the product imports nothing from test/, sim/, bench/ or scripts/",
      severity: "error",
      from: { path: "^src/", pathNot: "\\.test\\.ts$" },
      to: { path: ["^test/", "^sim/", "^bench/", "^scripts/", "\\.test\\.ts$"] },
    },
    {
      name: "agent-state-in-agent-only",
      comment: "a process that ends with its call does not load what an agent shares among its calls",
      severity: "error",
      from: { path: "^src/bin/(process|plugin-loaders)\\.ts$" },
      to: { path: ["/shared\\.ts$", "/shared-[a-z-]+\\.ts$", "^src/agent/calls/agent-host\\.ts$"], reachable: true },
    },
    {
      name: "admin-decoders-only",
      comment:
        "of the plugins, the admin tool imports the decoders of options and annotations, and of the table and the records of host ports (running-owners reads them), alone",
      severity: "error",
      from: { path: "^src/admin/" },
      to: {
        path: "^src/(chained|plugin)/",
        pathNot:
          "^src/(chained/(portmap/(options|read-table|record-file|running-owners)|bandwidth/bandwidth)|plugin/(annotations|annotated-wishes))\\.ts$",
      },
    },
    {
      name: "admin-asks-bird",
      comment: "of the agent, the admin tool imports the client of BIRD alone",
      severity: "error",
      from: { path: "^src/admin/" },
      to: { path: "^src/agent/", pathNot: "^src/agent/bgp/control\\.ts$" },
    },
    {
      name: "admin-operator-pure-parts",
      comment:
        "of the operator, the admin tool and the upgrade import what is pure: never the parts that follow the cluster and change it",
      severity: "error",
      from: { path: "^src/(admin|upgrade)/" },
      to: { path: "^src/operator/reconcile/" },
    },
    {
      name: "no-circular",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "no-dev-dependency-in-product",
      severity: "error",
      from: { path: "^src/", pathNot: "(\\.test|contract)\\.ts$" },
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"], pathNot: "node_modules/(@types/bun|bun-types)" },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^(dist|bench/results)" },
    builtInModules: { add: ["bun", "bun:ffi", "bun:sqlite", "bun:test"] },
  },
};
