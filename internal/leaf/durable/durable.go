// Package durable writes small files that survive a crash of the process and a power cut.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// TempPattern matches the temporary files that a crash in ReplaceFile or ReplaceCache leaves in the directory.
const TempPattern = ".new-*.tmp"

// privateMode is the mode of the files that os.CreateTemp creates.
const privateMode fs.FileMode = 0o600

// ReplaceFile writes b to the file at path with the permissions mode, and replaces a file that exists. Readers and a
// crash at any time see the old content or the new, never a part. When ReplaceFile returns nil, content and name are
// on disk. After an error no temporary file is left. Concurrent calls for one path are safe.
func ReplaceFile(path string, b []byte, mode fs.FileMode) error {
	if err := swapFile(path, b, mode, true); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// ReplaceCache is ReplaceFile without waiting for the disk: after a power cut the file can be old, empty or
// incomplete. It is for content that its reader verifies and can compute again.
func ReplaceCache(path string, b []byte, mode fs.FileMode) error {
	return swapFile(path, b, mode, false)
}

// CreateFile creates the file at path with the permissions mode (before umask), and fails with fs.ErrExist if it
// exists. When CreateFile returns nil, content and name are on disk. After an error in writing no file is left; a
// crash can leave an incomplete one.
func CreateFile(path string, b []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err := fillFile(f, b, true); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir brings the names in a directory to disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// swapFile fills a temporary file next to path and renames it to path.
func swapFile(path string, b []byte, mode fs.FileMode, sync bool) error {
	// The temporary name is unique: concurrent calls must not write into the same file.
	f, err := os.CreateTemp(filepath.Dir(path), TempPattern)
	if err != nil {
		return err
	}
	var chmod error
	if mode != privateMode { // some file systems support no chmod
		chmod = f.Chmod(mode)
	}
	err = errors.Join(chmod, fillFile(f, b, sync))
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// fillFile writes b to f, syncs f if sync is set, and closes it.
func fillFile(f *os.File, b []byte, sync bool) error {
	_, err := f.Write(b)
	if err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
