import { version } from "../package.json";

/** The product's release, as `-v` and `version` print it. */
export const VERSION: string = `v${version}`;
