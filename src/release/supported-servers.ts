/** Server-side apply, by which everything is installed, is stable since then; so are all other APIs that are used. */
export const FIRST_SERVER = "v1.22.0";

/** Nothing is left out. */
export const FIRST_WITH_EVERYTHING = "v1.32.0";
