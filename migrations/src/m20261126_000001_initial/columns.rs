//! Columns, tables and indexes in few words.

use sea_orm_migration::prelude::*;

pub(super) fn text(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).text().not_null().take()
}

pub(super) fn optional_text(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).text().take()
}

/// A number of 64 bits: money, a time, or a count.
pub(super) fn number(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).big_integer().not_null().take()
}

pub(super) fn optional_number(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).big_integer().take()
}

/// A number of 32 bits.
pub(super) fn integer(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).integer().not_null().take()
}

pub(super) fn bytes(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).blob().not_null().take()
}

pub(super) fn optional_bytes(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).blob().take()
}

pub(super) fn boolean(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).boolean().not_null().take()
}

/// The primary key of a table with one key column.
pub(super) fn key(mut column: ColumnDef) -> ColumnDef {
    column.primary_key().take()
}

pub(super) fn at_least_zero(name: &'static str) -> Expr {
    Expr::col(name).gte(0)
}

pub(super) fn table(name: &'static str, columns: impl IntoIterator<Item = ColumnDef>) -> TableCreateStatement {
    let mut table = Table::create().table(name).take();
    for column in columns {
        table.col(column);
    }
    table
}

/// A table with a primary key of several columns.
pub(super) fn keyed_table(
    name: &'static str,
    columns: impl IntoIterator<Item = ColumnDef>,
    key: &[&'static str],
) -> TableCreateStatement {
    let mut primary = Index::create();
    for column in key {
        primary.col(*column);
    }
    table(name, columns).primary_key(&mut primary).take()
}

pub(super) fn reference(table: &'static str, column: &'static str, to: &'static str) -> ForeignKeyCreateStatement {
    ForeignKey::create().name(format!("{table}_{column}")).from(table, column).to(to, "id").take()
}

pub(super) fn index(name: &'static str, table: &'static str, columns: &[&'static str]) -> IndexCreateStatement {
    let mut index = Index::create().name(name).table(table).take();
    for column in columns {
        index.col(*column);
    }
    index
}
