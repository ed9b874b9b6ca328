/**
 * Bundles the page of the console: one document, its script, its style and its icon. `scripts/compile.ts` puts the result into
 * the executable; from source the console bundles it when it starts.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../identity.ts";
import type { PageAsset } from "./server/page-files.ts";

/** `PageFiles` as JSON has it. */
export interface BundledPage {
  readonly html: string;
  readonly assets: readonly (readonly [name: string, asset: PageAsset & { readonly body: string }])[];
}

export interface PageBundling {
  /** In place of the default one. */
  readonly title?: string;
  readonly plugins?: readonly Bun.BunPlugin[];
}

export async function bundlePage({ title = identity.title, plugins = [] }: PageBundling = {}): Promise<BundledPage> {
  const folder = join(import.meta.dir, "page");
  const built = await Bun.build({
    entrypoints: [join(folder, "main.tsx")],
    target: "browser",
    minify: true,
    sourcemap: "none",
    env: "disable",
    define: { "process.env.NODE_ENV": '"production"' },
    plugins: [WITHOUT_SYSTEM, ...plugins],
  });
  if (!built.success) throw new AggregateError(built.logs, "Cannot bundle the page of the console");
  const assets = await Promise.all(
    built.outputs.map(async (output) =>
      output.path.endsWith(".css")
        ? hashed("style", "css", "text/css; charset=utf-8", await output.text())
        : hashed("main", "js", "text/javascript; charset=utf-8", await output.text()),
    ),
  );
  const icon = hashed("icon", "svg", "image/svg+xml", readFileSync(join(folder, "icon.svg"), "utf8"));
  return {
    html: documentOf(
      title,
      [...assets, icon].map(([name]) => name),
    ),
    assets: [...assets, icon],
  };
}

/** Of the modules of the runtime, the page meets one: messages are kept from hiding codes of system calls, which a browser has none of. */
const WITHOUT_SYSTEM: Bun.BunPlugin = {
  name: "without-system",
  setup(builder) {
    builder.onResolve({ filter: /^node:os$/ }, ({ path }) => ({ path, namespace: "without-system" }));
    builder.onLoad({ filter: /./, namespace: "without-system" }, () => ({
      contents: "export const constants = { errno: {} };",
      loader: "js",
    }));
  },
};

function hashed(name: string, ending: string, type: string, body: string): BundledPage["assets"][number] {
  const hash = new Bun.CryptoHasher("sha256").update(body).digest("hex").slice(0, 16);
  return [`${name}-${hash}.${ending}`, { type, body }];
}

function documentOf(title: string, names: readonly string[]): string {
  const pathOf = (ending: string) => `/assets/${names.find((name) => name.endsWith(ending))}`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${Bun.escapeHTML(title)} console</title>
<link rel="icon" type="image/svg+xml" href="${pathOf(".svg")}">
<link rel="stylesheet" href="${pathOf(".css")}">
<script type="module" src="${pathOf(".js")}"></script>
<body><div id="app"></div><noscript>The console needs JavaScript: allow it for this address.</noscript></body>
</html>
`;
}
