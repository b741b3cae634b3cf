// Package tree is the engine of settings: it reads typed structs from their tags, config.yaml, .env, variables and flags,
// and shows, compares, describes, edits and watches them. It knows no setting; a Spec tells it the types and names.
//
// A value is taken from the first place that has it: a flag, the environment, the home's .env file, config.yaml, the default.
// An unknown key is a warning that names the nearest known one; a bad value is an error that names key, place, value and what
// is allowed, and all of them are reported at once. Secrets come from the environment or .env alone, print as "***", and
// are never repeated in a message.
//
// A field's tags are the one source of its documentation, and everything here reads the same ones:
//
//	yaml      its key, in small letters
//	doc       meaning and unit
//	default   in the form of config.yaml
//	min, max  bounds, inclusive
//	oneof     the only values, separated by commas
//	words     words that stand for 0
//	check     a named check, such as url, abspath or text
//	sep       "path": a text is split at the system's path separator, else at commas
//	env       variables beside the mechanical one; {N} is the label of the block
//	name      the label of a block
//	short     the field of a block that a bare value sets
//	keys      the word under which Spec.Names has a map's keys
//	required  an entry without it is an error
//	reload    what a change needs: live, session, adapter or restart
//
// The package touches no network and never writes to the process environment.
package tree
