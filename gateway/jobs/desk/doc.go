// Package desk lets people, the model and the command line see and change scheduled jobs, each only their own. It promises
// that a job of somebody else is one that is not there, whichever way it is asked for (P6). It decides nothing about
// schedules and runs nothing: it asks the book of jobs, and a Runner.
package desk
