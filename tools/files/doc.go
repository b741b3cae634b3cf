// Package files is the agent's hands on files: read_file, write_file, patch and search_files, all of them over
// a sandbox.Environment, so that they see the same files as the terminal.
//
// It promises that a change is made whole or not at all, that what a tool reports is what the disk shows,
// that secrets and the daemon's own data are neither shown nor written whatever name is used for them, and
// that asking the same thing again and again gets an answer that says so.
//
// It must not know sessions, models or chats; a session is a name under which it remembers what was shown.
package files
