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
    "lines",
    "system-call",
    "file-status",
    "load-once",
    "parse-json",
    "quote",
    "yaml",
    "unified-diff",
    "timers",
    "server-clock",
    "wakeup",
    "limited-connections",
  ],
  ["ip", "selector", "http"],
  ["model", "cni", "config"],
  ["linux", "kube", "log", "health", "grpc", "web", "tls"],
  ["datastore"],
  ["ipam", "policy", "firewall", "routing", "alp/mesh"],
  ["plugin", "chained", "flows"],
  ["upkeep", "release"],
  ["alp"],
  ["agent", "alp/command", "alp/upgrade", "controllers", "operator", "admin", "upgrade", "console", "console/command"],
  ["bin"],
];

const SAME_LAYER = {
  // It applies one object of a release: the list of who may choose addresses.
  upkeep: ["release"],
  "system-call": ["bytes"],
  "file-status": ["system-call"],
  quote: ["redaction"],
  "limited-connections": ["timers"],
  config: ["model", "cni"],
  // The command and the step of the slice use the frames of their programs, which register each in one place.
  "alp/command": ["admin"],
  "alp/upgrade": ["upgrade"],
  // `config check` decodes the options of the chained plugins, `ipam explain` annotations of pods: with the plugins' own
  // decoders, which are pure; see admin-decoders-only.
  // Of the agent it asks BIRD, by the agent's own client; see admin-asks-bird.
  admin: ["upgrade", "operator", "agent", "alp/command", "console/command"],
  upgrade: ["alp/upgrade"],
  // `vendorctl console`: as above, registered in one place.
  "console/command": ["admin", "console"],
  // Status, search for leaks and drafts of policies are those of the commands; of upgrades it shows the ledger, see console-reads-the-ledger.
  console: ["admin", "upgrade"],
};

/** Others load them too late or not at all: a plugin lives for milliseconds, an agent for months. */
const ADMIN_PACKAGES = "^node_modules/(diff|json-p3|yaml)/";

/** What release/ may import. Of kube/ types, and what compares versions of servers. */
const PURE =
  "^(src/(release|model|config|cni|ip|selector|http)/|src/alp/mesh/mesh-files\\.ts$|src/(identity|version|errors|quote|redaction|counted|yaml)\\.ts$|src/kube/(objects|server-version)\\.ts$)";

/** What the page of the console may load. The bundle has something else in place of `os`, which messages ask for names of errors. */
const PAGE_MAY_LOAD =
  "^(src/(console/(page|api)|flows|ip|model|selector|http)/|src/policy/(table/rule-comment|point|effective-rule)\\.ts$|src/admin/flows/(flow|loss)-words\\.ts$|src/(identity|errors|quote|redaction|counted|lines|parse-json)\\.ts$|identity/|node_modules/(valibot|preact|@preact|uplot|@tanstack)/|os$)";

/** The steps of an upgrade that undo or finish another one, and use its parts; what more steps share is beside them. */
const STEP_PAIRS = {
  unlock: "storage",
  "restore-owner-references": "owner-references",
  rollout: "remaining-nodes",
};

const STEPS = "^src/upgrade/steps/";

const stepRules = Object.entries(STEP_PAIRS).map(([step, other]) => ({
  name: `upgrade-step-${step}`,
  comment: `the step "${step}" undoes or finishes "${other}": it uses parts of no other step`,
  severity: "error",
  from: { path: `${STEPS}${step}/`, pathNot: "\\.test\\.ts$" },
  to: { path: STEPS, pathNot: `${STEPS}(${step}|${other})/` },
}));

/** Without the folders in it that are modules of their own. */
const pathOf = (module) => {
  const inner = LAYERS.flat().filter((other) => other.startsWith(`${module}/`));
  const others = inner.map((name) => `(?!${name.slice(module.length)}/)`).join("");
  return `^src/${module}${others}(/|\\.ts$|\\.test\\.tsx?$)`;
};

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
      name: "no-unknown-module-alone",
      comment: "nor does one lie there that imports nothing and is imported by nobody, which neither rule sees",
      severity: "error",
      from: { orphan: true, path: "^src/", pathNot: LAYERS.flat().map(pathOf) },
      to: {},
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
      name: "alp-registered-once",
      comment:
        "application layer policy is registered once each in agent, tool and upgrade; besides them its program imports it, and a release what pods of a mesh need",
      severity: "error",
      from: {
        path: "^src/",
        pathNot:
          "^src/(alp/|(agent/features|admin/main/commands|upgrade/(steps|detect/features)|release/released-files|bin/sidecar(-arguments)?)(\\.test)?\\.ts$)",
      },
      to: { path: "^src/alp/" },
    },
    {
      name: "alp-upgrade-uses-the-engine",
      comment: "the step of application layer policy knows no other step",
      severity: "error",
      from: { path: "^src/alp/" },
      to: { path: "^src/upgrade/", pathNot: "^src/upgrade/engine/" },
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
          "^src/(chained/(portmap/(options|read-table|record-file|running-owners)|bandwidth/(bandwidth|quantity))|plugin/(annotations|annotated-requests))\\.ts$",
      },
    },
    {
      name: "admin-packages-in-admin-only",
      comment: "only the admin tool loads the packages that find places in YAML, compare texts and apply JSON patches",
      severity: "error",
      from: { path: "^src/bin/", pathNot: "^src/bin/(main|admin)\\.ts$" },
      to: { path: ADMIN_PACKAGES, reachable: true },
    },
    {
      name: "admin-asks-bird",
      comment: "of the agent, the admin tool imports the client of BIRD alone",
      severity: "error",
      from: { path: "^src/admin/" },
      to: { path: "^src/agent/", pathNot: "^src/agent/bgp/control\\.ts$" },
    },
    {
      name: "admin-deletes-installation",
      comment: "of the operator, the admin tool imports the deletion of the Installation alone",
      severity: "error",
      from: { path: "^src/admin/" },
      to: { path: "^src/operator/", pathNot: "^src/operator/request-deletion\\.ts$" },
    },
    {
      name: "upgrade-steps-in-table-only",
      comment: "the engine and the rooms that steps share know no step: only the table names them",
      severity: "error",
      from: { path: "^src/", pathNot: [STEPS, "^src/upgrade/steps\\.ts$", "\\.test\\.ts$"] },
      to: { path: STEPS },
    },
    {
      name: "upgrade-step-alone",
      comment: "a step uses no part of another step",
      severity: "error",
      from: { path: `${STEPS}([^/]+)/`, pathNot: [`${STEPS}(${Object.keys(STEP_PAIRS).join("|")})/`, "\\.test\\.ts$"] },
      to: { path: STEPS, pathNot: `${STEPS}$1/` },
    },
    ...stepRules,
    {
      name: "release-is-pure",
      comment: "release/ is composition: it reads no file, cluster, clock or environment, and loads nothing that could",
      severity: "error",
      from: { path: "^src/release/", pathNot: "\\.test\\.ts$" },
      to: { pathNot: PURE },
    },
    {
      name: "page-is-for-browsers",
      comment: "the page of the console runs in a browser: it imports what is pure, and nothing of the runtime",
      severity: "error",
      from: { path: "^src/console/page/", pathNot: "\\.test\\.tsx?$" },
      to: { pathNot: PAGE_MAY_LOAD, reachable: true },
    },
    {
      name: "page-packages-in-the-page-only",
      comment: "nothing else draws",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/console/page/" },
      to: { path: "^node_modules/(preact|@preact|uplot|@tanstack)/" },
    },
    {
      name: "page-is-bundled",
      comment: "the server gets the page as text",
      severity: "error",
      from: { pathNot: "^src/console/page/" },
      to: { path: "^src/console/page/" },
    },
    {
      name: "console-in-console-only",
      comment: "no other program loads the console: a plugin lives for milliseconds",
      severity: "error",
      from: { path: "^src/bin/", pathNot: "^src/bin/(main|console|admin)\\.ts$" },
      to: { path: "^src/console/", reachable: true },
    },
    {
      name: "console-api-is-pure",
      comment: "page and server share it: schemas alone",
      severity: "error",
      from: { path: "^src/console/api/", pathNot: "\\.test\\.ts$" },
      to: { pathNot: "^(src/console/api/|node_modules/valibot/)" },
    },
    {
      name: "console-server-knows-no-source",
      comment: "the server asks what it is given: it has no token, no datastore and no command of its own",
      severity: "error",
      from: { path: "^src/console/server/", pathNot: "\\.test\\.ts$" },
      to: { path: "^src/(console/(source/|page|command/|console-process)|admin/|datastore/(?!replica/clock\\.ts$))" },
    },
    {
      name: "console-reads-the-ledger",
      comment: "of upgrades, the console imports the ledger alone",
      severity: "error",
      from: { path: "^src/console/" },
      to: { path: "^src/upgrade/", pathNot: "^src/upgrade/engine/ledger\\.ts$" },
    },
    {
      name: "console-source-knows-no-server",
      comment: "what is known of a cluster or a host does not depend on who asks for it",
      severity: "error",
      from: { path: "^src/console/source/", pathNot: "\\.test\\.ts$" },
      to: { path: "^src/console/(server|page|command)/" },
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
      from: { path: "^src/", pathNot: "(\\.test|contract)\\.tsx?$" },
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
