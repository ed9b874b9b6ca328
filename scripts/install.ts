/**
 * `make install` and `make uninstall`:
 *   bun scripts/install.ts [--uninstall] --out dist --destdir "" --prefix /usr/local --cni-bin-dir /opt/cni/bin --existing refuse
 * The names are those of the identity file in `IDENTITY` if `scripts/use-identity.ts` is preloaded.
 */
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { identity as names } from "../src/identity.ts";
import { CNI_BIN_DIRECTORY } from "../src/release/host-files.ts";
import { VERSION } from "../src/version.ts";
import { removeHostNetwork } from "./install/host-network.ts";
import { install, Refused, requireRecord, uninstall } from "./install/install.ts";

const { values } = parseArgs({
  options: {
    out: { type: "string", default: "dist" },
    destdir: { type: "string", default: "" },
    prefix: { type: "string", default: "/usr/local" },
    "cni-bin-dir": { type: "string", default: CNI_BIN_DIRECTORY },
    existing: { type: "string", default: "refuse" },
    uninstall: { type: "boolean", default: false },
    force: { type: "boolean", default: false },
  },
});

try {
  for (const note of await run()) console.log(note);
} catch (failure) {
  const message = messageOf(failure);
  if (message === undefined) throw failure;
  console.error(`make: ${message}`);
  process.exit(1);
}

/** `undefined`: a mistake of the program, not of its user or the host. */
function messageOf(failure: unknown): string | undefined {
  if (failure instanceof Refused) return failure.message;
  if (!(failure instanceof Error && "code" in failure)) return undefined;
  const isForbidden = ["EACCES", "EPERM", "EROFS"].includes(String(failure.code));
  return isForbidden ? `${failure.message}; run it as root, or give a DESTDIR that you may write to` : failure.message;
}

async function run(): Promise<readonly string[]> {
  const { existing, prefix, destdir, "cni-bin-dir": cniBinDirectory } = values;
  if (existing !== "refuse" && existing !== "backup") {
    throw new Refused(`Cannot install: EXISTING is "${existing}"; use "refuse" or "backup"`);
  }
  for (const [name, value] of Object.entries({ PREFIX: prefix, CNI_BIN_DIR: cniBinDirectory })) {
    if (/^\/\S*$/.test(value)) continue;
    throw new Refused(`Cannot install: ${name} is "${value}"; give an absolute path without spaces`);
  }
  const root = destdir === "" ? "/" : resolve(destdir);
  const places = { prefix, cniBinDirectory };
  if (values.uninstall) {
    const record = requireRecord({ names, root, places });
    const notes = root === "/" ? await removeHostNetwork(record, { names, force: values.force }) : [];
    return [...notes, ...uninstall({ names, root, places }), `${names.product} is uninstalled`];
  }

  const executable = resolve(join(values.out, "bin", names.product));
  const notes = install({ names, version: VERSION, executable, root, places, existing });
  return [
    ...notes,
    `${names.product} ${VERSION} is installed in ${join(root, cniBinDirectory)}`,
    ...(root === "/" ? [`start its agent: systemctl daemon-reload && systemctl enable --now ${names.nodeAgent}`] : []),
  ];
}
