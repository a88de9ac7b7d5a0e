// Package object makes the objects requests work on: objects of any resource that a load
// makes for itself, those that are there anyway, and the operations on them.
//
// A Set is the objects of one resource of one load, spread over namespaces,
// with payloads of drawn sizes. It serves watches too. An operation, as
// NewOperation makes it for the request engine, is one verb or a weighted mix
// of verbs over several resources, made as one identity or as several tenants.
//
// Who does what is drawn by the seed and the number of the arrival, without
// state, so that arrivals which could not be sent change nothing for those
// after. Three things depend on what happened before, because they have to: a
// delete takes the object that has been whole for longest; an update that must
// name a resourceVersion takes the next object that no other update of the
// load is writing; a get of objects that are not ours takes one of those last
// seen. In a mix, reads and writes meet deletes: a 404 for an object that is
// just gone, and a 409 for one that a patch has changed under an update, are
// what many clients of one object see, and are counted as they come.
//
// Nothing is encoded while a load runs. Paths and manifests are pieces that
// were rendered beforehand; a request is their copy into the caller's buffers,
// with a number and a payload between. Answers are checked piece by piece as
// they come in and are kept nowhere: JSON to its last byte, protobuf by its
// magic number, compressed ones not at all.
//
// What is not measured goes over a client of its own (net/http), which tries
// again; see asker.
package object
