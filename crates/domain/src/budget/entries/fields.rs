//! Payers, counters, prices and messages.

use std::net::IpAddr;

use super::bytes::{Reader, Writer};
use crate::budget::allowances::{CounterId, CounterPeriod};
use crate::budget::{Account, Payer, ResetInterval};
use crate::ids::{ApiKeyId, DecisionId, DestinationId, GuardrailId, OutboxId, WorkspaceId};
use crate::json::Json;
use crate::money::Price;
use crate::pricing::TokenPrices;
use crate::usage::OutboxMessage;

impl Writer {
    pub(super) fn id(&mut self, id: &DecisionId) {
        self.text(id.as_str());
    }

    pub(super) fn payer(&mut self, payer: &Payer) {
        self.uuid(payer.workspace_id.uuid());
        self.uuid(payer.api_key.uuid());
        self.list(&payer.guardrails, |writer, id| writer.uuid(id.uuid()));
    }

    pub(super) fn counter(&mut self, counter: CounterId) {
        match counter.account {
            Account::Workspace(id) => {
                self.byte(0);
                self.uuid(id.uuid());
            }
            Account::Key(key) => {
                self.byte(1);
                self.uuid(key.uuid());
            }
            Account::Guardrail(id, key) => {
                self.byte(2);
                self.uuid(id.uuid());
                self.uuid(key.uuid());
            }
        }
        match counter.period {
            CounterPeriod::Lifetime => self.byte(0),
            CounterPeriod::Calendar(interval, start) => {
                self.byte(match interval {
                    ResetInterval::Daily => 1,
                    ResetInterval::Weekly => 2,
                    ResetInterval::Monthly => 3,
                });
                self.time(start);
            }
        }
    }

    pub(super) fn prices(&mut self, prices: TokenPrices) {
        for price in [prices.prompt, prices.completion] {
            let (mantissa, scale) = price.parts();
            self.byte(u8::try_from(scale).unwrap_or(u8::MAX));
            // Nearly every price fits into 64 bits.
            if let Ok(mantissa) = i64::try_from(mantissa) {
                self.byte(0);
                self.signed(mantissa);
            } else {
                self.byte(1);
                self.wide(mantissa);
            }
        }
    }

    /// Writes the length of the address, 0 for none, and its bytes.
    pub(super) fn address(&mut self, address: Option<IpAddr>) {
        match address {
            None => self.byte(0),
            Some(IpAddr::V4(address)) => {
                self.byte(4);
                self.raw(&address.octets());
            }
            Some(IpAddr::V6(address)) => {
                self.byte(16);
                self.raw(&address.octets());
            }
        }
    }

    pub(super) fn message(&mut self, message: &OutboxMessage) {
        self.uuid(message.id.uuid());
        self.uuid(message.destination_id.uuid());
        self.text(message.payload.text());
    }
}

impl Reader<'_> {
    pub(super) fn id(&mut self) -> Option<DecisionId> {
        self.text()?.parse().ok()
    }

    pub(super) fn payer(&mut self) -> Option<Payer> {
        Some(Payer {
            workspace_id: WorkspaceId::from_uuid(self.uuid()?),
            api_key: ApiKeyId::from_uuid(self.uuid()?),
            guardrails: self.list(|reader| reader.uuid().map(GuardrailId::from_uuid))?,
        })
    }

    pub(super) fn counter(&mut self) -> Option<CounterId> {
        let account = match self.byte()? {
            0 => Account::Workspace(WorkspaceId::from_uuid(self.uuid()?)),
            1 => Account::Key(ApiKeyId::from_uuid(self.uuid()?)),
            2 => Account::Guardrail(GuardrailId::from_uuid(self.uuid()?), ApiKeyId::from_uuid(self.uuid()?)),
            _ => return None,
        };
        let interval = match self.byte()? {
            0 => return Some(CounterId { account, period: CounterPeriod::Lifetime }),
            1 => ResetInterval::Daily,
            2 => ResetInterval::Weekly,
            3 => ResetInterval::Monthly,
            _ => return None,
        };
        Some(CounterId { account, period: CounterPeriod::Calendar(interval, self.time()?) })
    }

    pub(super) fn prices(&mut self) -> Option<TokenPrices> {
        Some(TokenPrices { prompt: self.price()?, completion: self.price()? })
    }

    fn price(&mut self) -> Option<Price> {
        let scale = self.byte()?;
        let mantissa = match self.byte()? {
            0 => i128::from(self.signed()?),
            1 => self.wide()?,
            _ => return None,
        };
        Price::from_parts(mantissa, u32::from(scale))
    }

    /// Reads a client's address.
    #[expect(clippy::option_option, reason = "malformed, absent, present")]
    pub(super) fn address(&mut self) -> Option<Option<IpAddr>> {
        Some(match self.byte()? {
            0 => None,
            4 => Some(IpAddr::from(self.raw::<4>()?)),
            16 => Some(IpAddr::from(self.raw::<16>()?)),
            _ => return None,
        })
    }

    pub(super) fn message(&mut self) -> Option<OutboxMessage> {
        Some(OutboxMessage {
            id: OutboxId::from_uuid(self.uuid()?),
            destination_id: DestinationId::from_uuid(self.uuid()?),
            payload: Json::parse(self.text()?).ok()?,
        })
    }
}
