/** The two kinds of actors of a loader, and what each is started with. */
import type { Handler } from "./handler.ts";
import { type ConstructorRole, openConstructor } from "./data-constructor.ts";
import { type SourceRole, openSources } from "./source-host.ts";

/** What an actor is to be. Plain data and shared memory. */
export type ActorRole = SourceRole | ConstructorRole;

/** The handler of a role, once what it needs is open. */
export function handlerOf(role: ActorRole): Promise<Handler> {
  switch (role.role) {
    case "sources":
      return openSources(role);
    case "constructor":
      return openConstructor(role);
  }
}
