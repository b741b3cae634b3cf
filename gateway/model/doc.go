// Package model is Herald's one view of language models: a Model streams an answer to a Request. It holds
// the providers (OpenAI-compatible chat completions, Anthropic messages, the embedded demo), and the
// wrappers that retry and fall back.
//
// It promises that a cancelled call returns at once and is abandoned, that what a provider streams arrives
// in order, that errors carry a Kind the loop can act on, and that keys never appear in an error. It must
// not know sessions, tools or platforms: tools are names with schemas here.
package model
