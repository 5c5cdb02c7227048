/**
 * A file system in memory that loses, when it crashes, what a real one may lose: any part of a file's
 * content that was not synced, and any change to a directory that was not synced, in any combination.
 * A rename is one change: it is lost or kept as a whole.
 */
import type { CheckpointEntry, FileOperation } from "@trireme/checkpoint";

interface File {
  kind: "file";
  content: Uint8Array;
  synced: Uint8Array;
}

interface Directory {
  kind: "directory";
  entries: Map<string, Node>;
  durable: Map<string, Node>;
  /** Changes since the last sync, in order. */
  pending: ((entries: Map<string, Node>) => void)[];
}

type Node = File | Directory;

/** Answers "does this unsynced change survive?" and "how much of this content does?" in [0, 1). */
export type Luck = () => number;

const newDirectory = (): Directory => ({
  kind: "directory",
  entries: new Map(),
  durable: new Map(),
  pending: [],
});

export class MemoryFileSystem {
  #root = newDirectory();

  /** Carries an operation out; with `torn`, as far as that much luck takes it before the power goes. */
  apply(operation: FileOperation, torn?: Luck): void {
    switch (operation.kind) {
      case "make-directory": {
        let directory = this.#root;
        for (const part of operation.path.split("/")) {
          const next = directory.entries.get(part) ?? newDirectory();
          if (next.kind !== "directory") throw new Error(`${operation.path}: not a directory`);
          if (!directory.entries.has(part)) {
            this.#change(directory, (entries) => void entries.set(part, next));
            if (torn === undefined) sync(directory);
          }
          directory = next;
        }
        return;
      }
      case "write": {
        const [parent, name] = this.#parent(operation.path);
        const old = parent.entries.get(name);
        if (old?.kind === "directory") throw new Error(`${operation.path}: is a directory`);
        const file: File = old ?? {
          kind: "file",
          content: new Uint8Array(0),
          synced: new Uint8Array(0),
        };
        const { bytes, offset = 0 } = operation;
        if (offset > file.content.length)
          throw new Error(`${operation.path}: a hole before ${offset}`);
        const length = Math.floor((torn?.() ?? 1) * bytes.length);
        const content = new Uint8Array(offset + length);
        content.set(file.content.subarray(0, offset));
        content.set(bytes.subarray(0, length), offset);
        file.content = content;
        this.#change(parent, (entries) => void entries.set(name, file));
        return;
      }
      case "sync": {
        const file = this.#node(operation.path);
        if (file?.kind !== "file") throw new Error(`${operation.path}: no such file`);
        if (torn === undefined) file.synced = file.content;
        return;
      }
      case "sync-directory": {
        const directory = this.#node(operation.path);
        if (directory?.kind !== "directory")
          throw new Error(`${operation.path}: no such directory`);
        if (torn === undefined) sync(directory);
        return;
      }
      case "rename": {
        const [parent, from] = this.#parent(operation.from);
        const [target, to] = this.#parent(operation.to);
        if (parent !== target) throw new Error(`${operation.from}: a rename to another directory`);
        const node = parent.entries.get(from);
        if (node === undefined) throw new Error(`${operation.from}: no such file`);
        const old = parent.entries.get(to);
        if (old?.kind === "directory") throw new Error(`${operation.to}: is a directory`);
        this.#change(parent, (entries) => {
          entries.delete(from);
          entries.set(to, node);
        });
        return;
      }
      case "remove": {
        const above = operation.path.lastIndexOf("/");
        if (above !== -1 && this.#node(operation.path.slice(0, above)) === undefined) return;
        const [parent, name] = this.#parent(operation.path);
        const node = parent.entries.get(name);
        if (node?.kind === "directory") {
          // File by file, as a recursive removal is: half of it may be what a crash leaves.
          for (const child of Array.from(node.entries.keys())) {
            if (torn !== undefined && torn() < 0.5) continue;
            this.#change(node, (entries) => void entries.delete(child));
          }
        }
        if (torn === undefined) this.#change(parent, (entries) => void entries.delete(name));
        return;
      }
    }
  }

  /** What is on the disk after a crash. */
  crashed(luck: Luck): MemoryFileSystem {
    const survivor = new MemoryFileSystem();
    survivor.#root = surviving(this.#root, luck);
    return survivor;
  }

  names(path: string): string[] {
    const directory = this.#node(path);
    return directory?.kind === "directory" ? [...directory.entries.keys()].sort() : [];
  }

  read(path: string): Uint8Array | undefined {
    const file = this.#node(path);
    return file?.kind === "file" ? file.content : undefined;
  }

  /** The entries of a directory of checkpoints, as an adapter lists them. */
  checkpointEntries(path: string): CheckpointEntry[] {
    return this.names(path).map((name) => {
      const files = this.names(`${path}/${name}`);
      const marker = this.read(`${path}/${name}/COMPLETE`);
      return {
        name,
        files: files.map((file) => ({
          name: file,
          size: this.read(`${path}/${name}/${file}`)!.length,
        })),
        marker: marker === undefined ? undefined : new TextDecoder().decode(marker),
      };
    });
  }

  #change(directory: Directory, change: (entries: Map<string, Node>) => void): void {
    change(directory.entries);
    directory.pending.push(change);
  }

  #node(path: string): Node | undefined {
    let node: Node | undefined = this.#root;
    for (const part of path.split("/")) {
      node = node?.kind === "directory" ? node.entries.get(part) : undefined;
    }
    return node;
  }

  #parent(path: string): [Directory, string] {
    const cut = path.lastIndexOf("/");
    const parent = cut === -1 ? this.#root : this.#node(path.slice(0, cut));
    if (parent?.kind !== "directory") throw new Error(`${path}: its directory does not exist`);
    return [parent, path.slice(cut + 1)];
  }
}

function sync(directory: Directory): void {
  directory.durable = new Map(directory.entries);
  directory.pending = [];
}

function surviving(directory: Directory, luck: Luck): Directory {
  const entries = new Map(directory.durable);
  for (const change of directory.pending) if (luck() < 0.5) change(entries);
  const survivor = newDirectory();
  for (const [name, node] of entries) survivor.entries.set(name, survivingNode(node, luck));
  survivor.durable = new Map(survivor.entries);
  return survivor;
}

function survivingNode(node: Node, luck: Luck): Node {
  if (node.kind === "directory") return surviving(node, luck);
  const { content, synced } = node;
  // All of the synced content, or any prefix of what was written since.
  const kept =
    content === synced || luck() < 0.5
      ? synced
      : content.slice(0, Math.round(luck() * content.length));
  return { kind: "file", content: kept, synced: kept };
}
