// Package locales holds every text that Herald itself says to people, one catalog per language, and the
// Printer that fills it in. English is the source and complete; a text that another catalog lacks falls
// back to English, and a key that no catalog has is returned as it is.
//
// It knows nobody. What the agent says, logs, tool output and command descriptions are not translated.
package locales
