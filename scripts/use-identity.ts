/** Preloaded (`bun --preload`): gives the program that follows the names of the identity file in `IDENTITY`. */
import { join, resolve } from "node:path";
import { readIdentity } from "./identity.ts";

// Not imported: a module that is loaded already cannot be replaced.
const defaultFile = join(import.meta.dir, "../identity/vendor.json");
const names = await readIdentity(resolve(process.env["IDENTITY"] ?? defaultFile), await Bun.file(defaultFile).json());

Bun.plugin({
  name: "identity",
  setup(builder) {
    builder.onLoad({ filter: /\/identity\/vendor\.json$/ }, () => ({ exports: { default: names }, loader: "object" }));
  },
});
