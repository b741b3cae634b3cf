// Package checkpoint keeps pictures of the directories that the agent works in, so that a person can go back to one. It
// is infrastructure and no tool: the model never sees it.
//
// The pictures are commits of one bare git repository beside the profile's other files, with an index and a ref for each
// directory; the user's own repositories are never touched. Which changes were the agent's is kept in a ledger: the
// state of each path after the agent changed it, found for file tools and for commands alike by comparing the tree
// before and after the call (Watch). A path whose state is another one now was edited by a person, and a safe rollback
// leaves it alone.
//
// It promises:
//
//   - A rollback says exactly what it did: what is kept, what could not be changed and why is named, and nothing that was
//     kept is reported as restored.
//   - No byte that no checkpoint holds is removed: what a rollback overwrites or deletes is in the checkpoint that it
//     takes first, whatever its size; a file that is over the size cap and in no checkpoint is never deleted.
//   - Undo brings back the state before the rollback, file modes included.
//   - A crash leaves each file as it was before or as it is after, and Recover finishes what was begun.
//
// It knows nothing of sessions, models and chats. It needs the git program, 2.31 or newer; without it a Store is off.
package checkpoint
