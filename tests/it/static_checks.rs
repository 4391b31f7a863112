//! Cases of this domain: `fixtures/cases/static_checks`.
