// Package realplane holds the test of package breakdown against a real control
// plane: whether upstream's metrics and audit log say what we take them to say.
package realplane
