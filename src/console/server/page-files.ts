/** The page of the console as the executable holds it: nothing of it is read from disk or from elsewhere. */

export interface PageAsset {
  readonly type: string;
  readonly body: Uint8Array | string;
}

export interface PageFiles {
  /** The document. It refers to `assets` by `/assets/NAME`, and has no script or style of its own. */
  readonly html: string;
  /** By name, which has a hash of the contents in it: browsers keep them for good. */
  readonly assets: ReadonlyMap<string, PageAsset>;
}
