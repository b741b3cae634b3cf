// Package toolbox holds the tools of a profile: which there are, which of them a conversation gets, where their stores are,
// and the bus that runs them. It knows nothing of platforms and of how a turn is run.
package toolbox
