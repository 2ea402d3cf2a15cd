//! In-memory fakes of every port and one contract suite per port, for tests of this crate and of others.
