// Package gatewaytest is the stage for tests of the whole daemon: a House runs one in the test's process between a fake
// Telegram and a scripted model, and a Stage is a platform in memory that can be added to it. A room's external tests use it to
// test the room as people meet it. It imports gateway, so only external test packages may import it.
package gatewaytest
