/** Bun bundles them. */
declare module "*.css";
