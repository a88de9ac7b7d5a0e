// Package object provides the operations of loads on objects of any resource. It creates the objects, or finds
// existing ones.
//
// A Set holds a load's objects of one resource, spread over namespaces, with payloads of random sizes. Loads of kind
// "watches" use Sets too. NewOperation returns an operation for the request engine: one verb on one resource, or a
// weighted mix of verbs and resources, for one identity or several tenants.
//
// The seed and an arrival's number determine its operation, tenant and object, so an unsent arrival does not change
// later ones. Four operations depend on earlier requests instead. A delete uses the object that was created the longest
// time ago. A deletecollection uses the namespace whose objects have all existed for the longest time. An update that
// must name a resourceVersion uses the next object without another update in flight. A get of objects that the load did
// not create uses one of the objects in the latest list. In a mix, operations affect each other: a 404 for a deleted
// object and a 409 for an update after a patch are counted as outcomes.
//
// Paths and manifests are encoded before a load runs. A request only copies them into the caller's buffers and inserts
// a number and a payload. Answers are checked as they arrive and not kept. JSON and CBOR are checked completely,
// protobuf only by its magic number, and compressed responses not at all.
//
// A separate client with retries, asker, sends the requests that are not measured.
package object
