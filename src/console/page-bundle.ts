/** The page that the server sends: that of the executable, or, from source, one that is bundled now. */
import type { BundledPage } from "./bundle-page.ts";
import type { PageFiles } from "./server/page-files.ts";

/** A `BundledPage` as JSON, by `scripts/compile.ts`. */
declare const CONSOLE_PAGE: string | undefined;

export async function loadPage(): Promise<PageFiles> {
  const { html, assets } = await bundledPage();
  return { html, assets: new Map(assets) };
}

async function bundledPage(): Promise<BundledPage> {
  if (typeof CONSOLE_PAGE !== "undefined") return JSON.parse(CONSOLE_PAGE);
  const { bundlePage } = await import("./bundle-page.ts");
  return bundlePage();
}
